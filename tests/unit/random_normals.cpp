#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/random/normals.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(random_normals)

BOOST_AUTO_TEST_CASE(double_precision_fill_gives_the_plain_streams_numbers) {
  const StreamKey key{0x0123456789ABCDEFULL, Stream::evaluation, 41, 7};
  std::vector<double> filled(48);
  BOOST_TEST(fill_normals(key, 0, filled.data(), filled.size()) == 3U);
  NormalStream plain(key);
  for (std::size_t group = 0; group < 3; ++group) {
    for (std::size_t block = 0; block < 8; ++block) {
      // Both evaluate log, sqrt, sin and cos to a few units in the last place of values below 9.
      BOOST_TEST(std::abs(filled[16 * group + block] - plain()) < 1e-14);
      BOOST_TEST(std::abs(filled[16 * group + 8 + block] - plain()) < 1e-14);
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

template <typename T>
void check_law(std::uint64_t seed) {
  std::vector<T> values(4096);
  double sums[4] = {0, 0, 0, 0};
  double neighbours = 0.0;
  double contexts = 0.0;
  std::vector<T> previous(values.size(), T{0});
  std::size_t tail = 0;
  const int batches = 500;
  for (int c = 0; c < batches; ++c) {
    fill_normals({seed, Stream::training, 9, static_cast<std::uint32_t>(c)}, 0, values.data(), values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const auto x = static_cast<double>(values[k]);
      double power = x;
      for (double& sum : sums) {
        sum += power;
        power *= x;
      }
      if (k > 0) neighbours += x * static_cast<double>(values[k - 1]);
      contexts += x * static_cast<double>(previous[k]);
      tail += std::abs(x) > 3.0 ? 1U : 0U;
    }
    previous = values;
  }
  const double n = batches * 4096.0;
  // Standard errors of the moments of N(0, 1): var x = 1, x^2 = 2, x^3 = 15, x^4 = 96; of products of independent
  // ones: 1.
  BOOST_TEST(std::abs(sums[0] / n) < 4 * std::sqrt(1 / n));
  BOOST_TEST(std::abs(sums[1] / n - 1) < 4 * std::sqrt(2 / n));
  BOOST_TEST(std::abs(sums[2] / n) < 4 * std::sqrt(15 / n));
  BOOST_TEST(std::abs(sums[3] / n - 3) < 4 * std::sqrt(96 / n));
  BOOST_TEST(std::abs(neighbours / n) < 4 * std::sqrt(1 / n));
  BOOST_TEST(std::abs(contexts / n) < 4 * std::sqrt(1 / n));
  const double p = std::erfc(3.0 / std::sqrt(2.0));
  BOOST_TEST(std::abs(static_cast<double>(tail) - n * p) < 4 * std::sqrt(n * p));
}

BOOST_AUTO_TEST_CASE(moments_tail_and_correlations_are_those_of_independent_normals) {
  check_law<float>(17);
  check_law<double>(17);
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
