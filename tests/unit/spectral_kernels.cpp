#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "iclflow/problem/initial.hpp"
#include "iclflow/spectral/large_context.hpp"
#include "iclflow/spectral/mobility.hpp"

// The vectorised kernels of the reduced flow against plain loops.

namespace {

using iclflow::Coordinates;
using iclflow::Problem;

/// The gradient by its formula, entry by entry, with the absolute sums that bound its rounding.
struct PlainGradient {
  Eigen::VectorXd value;
  Eigen::VectorXd terms;  ///< sum of the absolute values of what is added up in each entry
};

struct PlainLoss {
  const Problem& problem;
  const Coordinates& coordinates;
  const Eigen::VectorXd& state;

  [[nodiscard]] double mu(int h, int i) const { return state(h * problem.tasks() + i); }
  [[nodiscard]] Eigen::Index omega_index(int h, int k) const {
    return problem.heads * problem.tasks() + h * coordinates.size() + k;
  }
  [[nodiscard]] double omega(int h, int k) const { return state(omega_index(h, k)); }
  [[nodiscard]] int task(int k) const { return coordinates.task[static_cast<std::size_t>(k)]; }
  [[nodiscard]] double multiplicity(int k) const { return coordinates.multiplicity[static_cast<std::size_t>(k)]; }
  [[nodiscard]] double correlation(int h, int g) const {
    double overlap = 0.0;
    for (int k = 0; k < coordinates.size(); ++k) overlap += multiplicity(k) * omega(h, k) * omega(g, k);
    return std::exp(overlap);
  }
  [[nodiscard]] double residual(int k) const {
    double r = 1.0;
    for (int h = 0; h < problem.heads; ++h) r -= mu(h, task(k)) * omega(h, k);
    return r;
  }
  [[nodiscard]] double bias_weight(int k) const {
    const int i = task(k);
    return problem.signal_power(i) / problem.task_dimensions[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] double noise_weight(int i) const {
    return problem.signal_power(i) * problem.noise_factor(i) / problem.context_length;
  }

  [[nodiscard]] PlainGradient gradient() const {
    PlainGradient result{Eigen::VectorXd::Zero(state.size()), Eigen::VectorXd::Zero(state.size())};
    const auto add = [&](Eigen::Index at, double term, double size) {
      result.value(at) += term;
      result.terms(at) += size;
    };
    for (int h = 0; h < problem.heads; ++h) {
      for (int g = 0; g < problem.heads; ++g) {
        const double e = correlation(h, g);
        for (int i = 0; i < problem.tasks(); ++i) {
          const double noise = noise_weight(i) * e * mu(g, i);
          add(h * problem.tasks() + i, noise, std::abs(noise));
          for (int k = 0; k < coordinates.size(); ++k) {
            const double pull = multiplicity(k) * noise * mu(h, i) * omega(g, k);
            add(omega_index(h, k), pull, std::abs(pull));
          }
        }
      }
      for (int k = 0; k < coordinates.size(); ++k) {
        const double bias = multiplicity(k) * bias_weight(k);
        double size = 1.0;
        for (int g = 0; g < problem.heads; ++g) size += std::abs(mu(g, task(k)) * omega(g, k));
        add(h * problem.tasks() + task(k), -bias * residual(k) * omega(h, k), bias * size * std::abs(omega(h, k)));
        add(omega_index(h, k), -bias * residual(k) * mu(h, task(k)), bias * size * std::abs(mu(h, task(k))));
      }
    }
    return result;
  }
};

Problem make_problem(int heads, std::vector<int> dimensions) {
  Problem problem;
  problem.heads = heads;
  problem.signal_variance.assign(dimensions.size(), 0.7);
  problem.signal_variance.back() = 1.9;
  problem.task_dimensions = std::move(dimensions);
  problem.context_length = 20;
  problem.noise_variance = 0.4;
  return problem;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spectral_kernels)

// Rounding: a sum of n terms in any order is off by at most n eps times the sum of their sizes; each term carries some
// ten roundings, and E that of its exponent, the overlap (here below 40) times K eps.
BOOST_AUTO_TEST_CASE(the_gradient_is_that_of_plain_loops_for_every_number_of_heads_and_shape_of_blocks) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  for (const int heads : {1, 2, 3, 4, 5, 8, 9}) {
    for (const auto& dimensions : {std::vector{1}, std::vector{3, 1, 7}, std::vector{8, 8}, std::vector{5, 17, 2, 9},
                                   std::vector{1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      const Problem problem = make_problem(heads, dimensions);
      for (const auto& coordinates : {Coordinates::full(problem), Coordinates::blocks(problem)}) {
        const iclflow::LargeContext loss(problem, coordinates);
        const auto size = static_cast<Eigen::Index>(heads) * (problem.tasks() + coordinates.size());
        Eigen::VectorXd state(size);
        for (Eigen::Index j = 0; j < size; ++j) state(j) = 0.5 * std::sin(1.0 + 1.7 * static_cast<double>(j * j % 101));
        const PlainGradient plain = PlainLoss{problem, coordinates, state}.gradient();
        Eigen::VectorXd fast;
        loss.gradient(state, fast);
        const double roundings = 10.0 + heads * problem.tasks() + 41.0 * problem.dimension();
        for (Eigen::Index j = 0; j < size; ++j) {
          BOOST_TEST(std::abs(fast(j) - plain.value(j)) <= roundings * eps * plain.terms(j));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_stays_so) {
  const Problem problem = make_problem(2, {3, 2});
  const iclflow::LargeContext loss(problem, Coordinates::full(problem));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 40.0}) {
    Eigen::VectorXd state = Eigen::VectorXd::Constant(14, 0.1);
    state(4) = bad;  // omega[0][0]: its square is beyond the exponential's range
    Eigen::VectorXd gradient;
    loss.gradient(state, gradient);
    BOOST_TEST(!std::isfinite(gradient(0)));
    BOOST_TEST(!std::isfinite(gradient(4)));
  }
}

BOOST_AUTO_TEST_CASE(the_charts_are_those_of_the_standard_library) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  constexpr Eigen::Index size = 21;
  Eigen::VectorXd x(size);
  Eigen::VectorXd imbalance(size);
  for (Eigen::Index j = 0; j < size; ++j) {
    x(j) = j == 4 ? 0.0 : std::sin(static_cast<double>(j)) * std::pow(10.0, static_cast<double>(j % 7) - 5.0);
    imbalance(j) = j % 5 < 3 ? 0.0 : 0.02;
  }
  const auto mobility = iclflow::Mobility::split(x, imbalance, Eigen::VectorXd::Constant(size, 0.3));
  Eigen::VectorXd y;
  mobility.to_chart(x, y);
  Eigen::VectorXd back;
  mobility.from_chart(y, back);
  for (Eigen::Index j = 0; j < size; ++j) {
    const double expected = mobility.chart(j) == iclflow::Mobility::Chart::logarithm
                                ? std::copysign(std::exp(y(j)), x(j))
                            : mobility.chart(j) == iclflow::Mobility::Chart::arsinh ? 0.003 * std::sinh(2.0 * y(j))
                                                                                    : x(j);
    BOOST_TEST(std::abs(back(j) - expected) <= 8.0 * eps * std::abs(expected));  // Highway: 1 to 4 units each
  }
  for (const double wild : {800.0, -800.0, std::numeric_limits<double>::quiet_NaN()}) {
    y.setConstant(wild);
    mobility.from_chart(y, back);
    for (Eigen::Index j = 0; j < size; ++j) {
      if (mobility.chart(j) == iclflow::Mobility::Chart::logarithm) {
        BOOST_TEST((std::isnan(wild) ? std::isnan(back(j)) : std::abs(back(j)) == std::exp(wild)));
      } else if (mobility.chart(j) == iclflow::Mobility::Chart::arsinh) {
        BOOST_TEST((std::isnan(wild) ? std::isnan(back(j)) : back(j) == std::sinh(wild)));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
