#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "iclflow/analysis/power_law.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/closures.hpp"

// Where the large-context flow ends, as x = ell / (sum_i P_i / 2 - ell) = kappa phi d_i / L. An idle product decays as
// 1/t only: at t = 1e5 in logarithmic coordinates it leaves a relative excess of some 1e-4 in x (theory/05).

using iclflow::fit_power_law;
using iclflow::PowerLaw;
using iclflow::Problem;

namespace {

constexpr double left_at_the_end = 1e-3;

Problem equal_tasks(int tasks, int heads, int dimension, int length) {
  Problem problem;
  problem.heads = heads;
  problem.task_dimensions.assign(static_cast<std::size_t>(tasks), dimension);
  problem.signal_variance.assign(static_cast<std::size_t>(tasks), 1.0);
  problem.context_length = length;
  return problem;
}

double final_loss(const Problem& problem) {
  iclflow::StepperOptions options;
  options.stepper = "rosenbrock4";
  const iclflow::SpectralFlow flow(problem, iclflow::aligned_start(problem, 0.1, 2.0), "large-context");
  const auto run = iclflow::integrate(flow, {0.0, 1e5}, options);
  BOOST_REQUIRE(run.status == iclflow::Status::completed);
  return run.trajectory["loss"].last()[0];
}

double half_power(const Problem& problem) {
  double sum = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) sum += 0.5 * problem.signal_power(i);
  return sum;
}

double final_x(const Problem& problem) {
  const double loss = final_loss(problem);
  return loss / (half_power(problem) - loss);
}

/// A fit whose points lie on the law but for `left_at_the_end`, and what it says of an exponent.
void check_exponent(const PowerLaw& fit, double exponent, std::initializer_list<double> wrong) {
  BOOST_TEST(std::abs(fit.exponent - exponent) < left_at_the_end);
  for (const double other : wrong) {
    BOOST_TEST(std::abs(fit.exponent - other) > 10.0 * left_at_the_end + 10.0 * fit.exponent_standard_error);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_coefficient)

// (c) The error vanishes with d / L: x has slope 1. The loss itself fits 0.93 over this range, which x excludes.
BOOST_AUTO_TEST_CASE(the_error_ratio_is_proportional_to_dimension_over_length) {
  std::vector<double> ratio;
  std::vector<double> x;
  std::vector<double> loss;
  for (const int times : {10, 20, 50, 100, 200}) {
    const Problem problem = equal_tasks(2, 2, 10, 10 * times);
    ratio.push_back(1.0 / times);
    loss.push_back(final_loss(problem));
    x.push_back(loss.back() / (half_power(problem) - loss.back()));
    BOOST_TEST(x.back() * times == std::numbers::e, boost::test_tools::tolerance(left_at_the_end));
  }
  check_exponent(fit_power_law(ratio, x), 1.0, {0.93, 0.5});
  const PowerLaw of_loss = fit_power_law(ratio, loss);
  BOOST_TEST(std::abs(of_loss.exponent - 0.93) < 0.01);  // quoted to two digits
  // Other blocks at the same d / L: the same x.
  BOOST_TEST(final_x(equal_tasks(2, 2, 40, 2000)) == x[2], boost::test_tools::tolerance(left_at_the_end));
}

// (d) One head for all of I tasks against I heads: coefficients e I and e, their ratio is the number of heads.
BOOST_AUTO_TEST_CASE(one_head_pays_as_many_times_as_there_are_tasks) {
  std::vector<double> heads;
  std::vector<double> ratios;
  for (int count = 1; count <= 8; ++count) {
    const double dedicated = final_x(equal_tasks(count, count, 10, 1000));
    const double single = final_x(equal_tasks(count, 1, 10, 1000));
    BOOST_TEST(dedicated * 100.0 == std::numbers::e, boost::test_tools::tolerance(left_at_the_end));
    heads.push_back(count);
    ratios.push_back(single / dedicated);
    BOOST_TEST(ratios.back() == count, boost::test_tools::tolerance(2.0 * left_at_the_end));
    BOOST_TEST(std::abs(ratios.back() - (count + 1.0)) > 0.9);
  }
  const PowerLaw fit = fit_power_law(heads, ratios);
  check_exponent(fit, 1.0, {0.5, 2.0});
  BOOST_TEST(std::abs(fit.prefactor - 1.0) < 2.0 * left_at_the_end);
}

// (g) Noise enters as phi = 1 + 1/SNR: x against phi is a line of slope 1 (in units of e d / L) through 0.
BOOST_AUTO_TEST_CASE(noise_enters_as_one_plus_its_ratio_to_the_signal) {
  std::vector<double> factor;
  std::vector<double> wrong;
  std::vector<double> x;
  for (const double snr : {8.0, 4.0, 2.0, 1.0, 0.5, 0.25}) {
    Problem problem = equal_tasks(2, 2, 10, 1000);
    problem.noise_variance = problem.signal_power(0) / snr;
    factor.push_back(1.0 + 1.0 / snr);
    wrong.push_back(1.0 + 1.0 / std::sqrt(snr));
    x.push_back(final_x(problem));
    BOOST_TEST(x.back() * 100.0 / factor.back() == std::numbers::e, boost::test_tools::tolerance(left_at_the_end));
  }
  check_exponent(fit_power_law(factor, x), 1.0, {0.5, 2.0});
  // Through the ends: intercept in units of the slope.
  const double slope = (x.back() - x.front()) / (factor.back() - factor.front());
  BOOST_TEST(std::abs(x.front() / slope - factor.front()) < 5.0 * left_at_the_end);
  // Against 1 + 1/sqrt(SNR) it is no proportionality.
  const PowerLaw other = fit_power_law(wrong, x);
  BOOST_TEST(std::abs(other.exponent - 1.0) > 5.0 * other.exponent_standard_error);
  BOOST_TEST(other.exponent > 1.3);
}

BOOST_AUTO_TEST_SUITE_END()
