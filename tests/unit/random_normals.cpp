#include <Random123/philox.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "iclflow/random/normals.hpp"

using namespace iclflow;

using Precisions = std::tuple<float, double>;

BOOST_AUTO_TEST_SUITE(random_normals)

/// The pair of one Philox block as fill_normals<double> defines it, with the library's own functions.
std::pair<double, double> plain_pair(const StreamKey& key, std::uint32_t block) {
  const auto word =
      r123::Philox4x32()({{block, key.context, key.step, static_cast<std::uint32_t>(key.stream)}},
                         {{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32U)}});
  const auto joined = [](std::uint32_t high, std::uint32_t low) {
    return static_cast<std::uint64_t>(high) << 32U | low;
  };
  const auto fraction = [](std::uint64_t bits) { return static_cast<double>(bits & 0x000FFFFFFFFFFFFFU) * 0x1p-52; };
  const std::uint64_t angular = joined(word[3], word[2]);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - fraction(joined(word[1], word[0]))));
  const double angle = 0.5 * std::numbers::pi * (fraction(angular) - 0.5);
  const double sign = angular >> 63U != 0 ? -1.0 : 1.0;
  const bool exchanged = (angular >> 62U & 1U) != 0;
  return {sign * radius * (exchanged ? std::sin(angle) : std::cos(angle)),
          sign * radius * (exchanged ? std::cos(angle) : std::sin(angle))};
}

BOOST_AUTO_TEST_CASE(double_precision_fill_is_box_muller_of_philox) {
  const StreamKey key{0x0123456789ABCDEFULL, Stream::evaluation, 41, 7};
  constexpr std::uint32_t groups = 200;
  std::vector<double> filled(16 * groups);
  BOOST_TEST(fill_normals(key, 5, filled.data(), filled.size()) == 5 + groups);
  for (std::uint32_t group = 0; group < groups; ++group) {
    for (std::uint32_t k = 0; k < 8; ++k) {
      const auto [first, second] = plain_pair(key, 8 * (5 + group) + k);
      // Both evaluate log, sqrt, sin and cos to a few units in the last place of values below 9.
      BOOST_TEST(std::abs(filled[16 * group + k] - first) < 1e-14);
      BOOST_TEST(std::abs(filled[16 * group + 8 + k] - second) < 1e-14);
    }
  }
}

BOOST_AUTO_TEST_CASE(groups_continue_where_the_last_call_stopped) {
  const StreamKey key{3, Stream::training, 1, 2};
  std::vector<float> whole(128), parts(128);
  fill_normals(key, 0, whole.data(), 128);
  const std::uint32_t next = fill_normals(key, 0, parts.data(), 32);
  fill_normals(key, next, parts.data() + 32, 96);
  BOOST_TEST(whole == parts, boost::test_tools::per_element());
}

namespace {

constexpr std::size_t length = 4096;  // of one sequence
constexpr std::uint32_t sequences = 250;
constexpr double count = 1.0 * length * sequences;

template <typename T>
std::vector<double> sequence(const StreamKey& key) {
  std::vector<T> values(length);
  fill_normals(key, 0, values.data(), length);
  return {values.begin(), values.end()};
}

/// z = mean / standard error of a mean over `count` numbers of the given variance.
double z_score(double sum, double variance) { return sum / std::sqrt(count * variance); }

/// All bounds: four standard errors; two-sided chance of 6e-5 each.
constexpr double bound = 4.0;

template <typename T>
std::vector<double> sample() {
  std::vector<double> all;
  for (std::uint32_t c = 0; c < sequences; ++c) {
    const std::vector<double> part = sequence<T>({17, Stream::training, 9, c});
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(moments_and_tails_are_those_of_the_normal_law, T, Precisions) {
  const std::vector<double> values = sample<T>();
  // E x^(2n) = (2n - 1)!!, so var x^n = (2n - 1)!! - (E x^n)^2
  const double moment[] = {1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945, 0, 10395, 0, 135135, 0, 2027025};
  for (int n = 1; n <= 8; ++n) {
    double sum = 0.0;
    for (const double x : values) sum += std::pow(x, n) - moment[n];
    BOOST_TEST(std::abs(z_score(sum, moment[2 * n] - moment[n] * moment[n])) < bound, "moment " << n);
  }
  for (const double threshold : {3.0, 4.0}) {
    const double p = 2.0 * normal_distribution(-threshold);
    const auto beyond = std::count_if(values.begin(), values.end(), [=](double x) { return std::abs(x) > threshold; });
    BOOST_TEST(std::abs(static_cast<double>(beyond) - count * p) < bound * std::sqrt(count * p));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(distribution_is_normal_by_chi_square_and_kolmogorov_smirnov, T, Precisions) {
  std::vector<double> values = sample<T>();
  constexpr std::size_t bins = 256;
  std::vector<double> filled(bins, 0.0);
  std::sort(values.begin(), values.end());
  double distance = 0.0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const double p = normal_distribution(values[k]);
    ++filled[std::min(bins - 1, static_cast<std::size_t>(p * bins))];
    const double below = static_cast<double>(k) / count;
    distance = std::max({distance, p - below, below + 1.0 / count - p});
  }
  double chi_square = 0.0;
  for (const double n : filled) chi_square += (n - count / bins) * (n - count / bins) / (count / bins);
  BOOST_TEST(std::abs(chi_square - (bins - 1)) < bound * std::sqrt(2.0 * (bins - 1)));
  // P(sqrt(n) D > x) = 2 exp(-2 x^2) - ...: 2e-4 at 2.15
  BOOST_TEST(std::sqrt(count) * distance < 2.15);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_is_correlated_with_anything, T, Precisions) {
  // Sequences whose keys differ in one part, and the sequence with itself some places on: 1 next, half a group the
  // other of a pair, a group, a few groups. Of the numbers and of their squares (variance 1 and 4), which see the
  // radius.
  constexpr std::size_t half = normals_per_group<T> / 2;
  const std::vector<std::size_t> lags = {1, 2, half, 2 * half, 64 * half};
  std::vector<double> other(5 + lags.size(), 0.0);
  std::vector<double> other_squares(other.size(), 0.0);
  for (std::uint32_t c = 0; c < sequences; ++c) {
    const StreamKey base{17, Stream::training, 1000, 1000 + c};
    const std::vector<double> x = sequence<T>(base);
    const auto add = [&](std::size_t k, const std::vector<double>& y, std::size_t lag) {
      for (std::size_t i = 0; i < length; ++i) {
        const double b = y[(i + lag) % length];
        other[k] += x[i] * b;
        other_squares[k] += (x[i] * x[i] - 1.0) * (b * b - 1.0);
      }
    };
    add(0, sequence<T>({18, base.stream, base.step, base.context}), 0);
    add(1, sequence<T>({17 + (1ULL << 32U), base.stream, base.step, base.context}), 0);
    add(2, sequence<T>({17, Stream::evaluation, base.step, base.context}), 0);
    add(3, sequence<T>({17, base.stream, base.step + 1, base.context}), 0);
    add(4, sequence<T>({17, base.stream, base.step, base.context + sequences}), 0);
    for (std::size_t k = 0; k < lags.size(); ++k) add(5 + k, x, lags[k]);
  }
  for (std::size_t k = 0; k < other.size(); ++k) {
    BOOST_TEST(std::abs(z_score(other[k], 1.0)) < bound, "pair " << k);
    BOOST_TEST(std::abs(z_score(other_squares[k], 4.0)) < bound, "squares of pair " << k);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_angle_of_a_pair_is_uniform, T, Precisions) {
  constexpr std::size_t half = normals_per_group<T> / 2;
  constexpr std::size_t bins = 64;
  std::vector<double> filled(bins, 0.0);
  const std::vector<double> values = sample<T>();
  for (std::size_t group = 0; group < values.size(); group += 2 * half) {
    for (std::size_t k = 0; k < half; ++k) {
      const double turn = std::atan2(values[group + half + k], values[group + k]) / (2.0 * std::numbers::pi) + 0.5;
      ++filled[std::min(bins - 1, static_cast<std::size_t>(turn * bins))];
    }
  }
  const double expected = 0.5 * count / bins;
  double chi_square = 0.0;
  for (const double n : filled) chi_square += (n - expected) * (n - expected) / expected;
  BOOST_TEST(std::abs(chi_square - (bins - 1)) < bound * std::sqrt(2.0 * (bins - 1)));
}

BOOST_AUTO_TEST_CASE(every_part_of_the_key_matters) {
  const StreamKey base{1, Stream::training, 1, 1};
  const std::vector<StreamKey> others{{2, Stream::training, 1, 1},
                                      {1ULL << 40U, Stream::training, 1, 1},
                                      {1, Stream::evaluation, 1, 1},
                                      {1, Stream::training, 2, 1},
                                      {1, Stream::training, 1, 2}};
  std::vector<double> a(16), b(16);
  fill_normals(base, 0, a.data(), 16);
  for (const StreamKey& key : others) {
    fill_normals(key, 0, b.data(), 16);
    for (std::size_t k = 0; k < 16; ++k) BOOST_TEST(a[k] != b[k]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
