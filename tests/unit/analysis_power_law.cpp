#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "iclflow/analysis/power_law.hpp"

BOOST_AUTO_TEST_SUITE(analysis_power_law)

using iclflow::fit_power_law;
using iclflow::PowerLaw;

BOOST_AUTO_TEST_CASE(an_exact_law_is_returned) {
  std::vector<double> x{250, 500, 1000, 4000};
  std::vector<double> y;
  std::vector<double> error;
  for (const double b : x) {
    y.push_back(3.0 / std::sqrt(b));
    error.push_back(0.01 * y.back());
  }
  const PowerLaw law = fit_power_law(x, y, error);
  BOOST_TEST(std::abs(law.exponent + 0.5) < 1e-13);  // rounding of logarithms of order ten
  BOOST_TEST(std::abs(law.prefactor - 3.0) < 1e-12);
  BOOST_TEST(law.chi_square < 1e-20);
  BOOST_TEST(law.probability > 0.999999);
  BOOST_TEST(law.degrees_of_freedom == 2);
  BOOST_TEST(std::abs(law(100.0) - 0.3) < 1e-13);
}

BOOST_AUTO_TEST_CASE(two_points_by_hand) {
  // x = 1, e: exponent ln(y2/y1) with variance s1^2 + s2^2 of the logs; prefactor y1 with error s1.
  const std::vector<double> x{1.0, std::exp(1.0)};
  const std::vector<double> y{2.0, 6.0};
  const std::vector<double> error{0.06, 0.24};
  const PowerLaw law = fit_power_law(x, y, error);
  BOOST_TEST(std::abs(law.exponent - std::log(3.0)) < 1e-14);
  BOOST_TEST(std::abs(law.exponent_standard_error - 0.05) < 1e-15);  // sqrt(.03^2 + .04^2)
  BOOST_TEST(std::abs(law.prefactor - 2.0) < 1e-14);
  BOOST_TEST(std::abs(law.log_prefactor_standard_error - 0.03) < 1e-15);
  BOOST_TEST(std::abs(law.deviation(std::log(3.0) - 0.1) - 2.0) < 1e-12);
}

BOOST_AUTO_TEST_CASE(the_standard_error_is_what_repeated_fits_scatter_by) {
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal;
  const std::vector<double> x{1, 2, 4, 8, 16, 32};
  const int repeats = 4000;
  double squared_deviation = 0.0;
  double chi_square = 0.0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::vector<double> y;
    std::vector<double> error;
    for (const double point : x) {
      const double relative = 0.01 + 0.002 * point;
      y.push_back(5.0 / point * std::exp(relative * normal(generator)));
      error.push_back(relative * y.back());
    }
    const PowerLaw law = fit_power_law(x, y, error);
    squared_deviation += law.deviation(-1.0) * law.deviation(-1.0) / repeats;
    chi_square += law.chi_square / repeats;
  }
  // Means of a chi-square with 1 and 4 degrees of freedom over the repeats: standard errors sqrt(2 dof / repeats),
  // taken five times.
  BOOST_TEST(std::abs(squared_deviation - 1.0) < 5.0 * std::sqrt(2.0 / repeats));
  BOOST_TEST(std::abs(chi_square - 4.0) < 5.0 * std::sqrt(8.0 / repeats));
}

BOOST_AUTO_TEST_CASE(a_wrong_law_is_rejected_by_the_same_data) {
  std::vector<double> x{1, 2, 4, 8, 16};
  std::vector<double> y;
  std::vector<double> error;
  for (const double point : x) {
    y.push_back(1.0 + std::log(point));  // a logarithm is no power
    error.push_back(0.01 * y.back());
  }
  BOOST_TEST(fit_power_law(x, y, error).probability < 1e-6);
}

BOOST_AUTO_TEST_CASE(unknown_errors_come_from_the_scatter) {
  // log y = -0.1, 0.2, -0.1 at log x = -1, 0, 1: slope 0, residuals -.1, .2, -.1, variance .06 / 1, xx = 2.
  const std::vector<double> x{std::exp(-1.0), 1.0, std::exp(1.0)};
  const std::vector<double> y{std::exp(-0.1), std::exp(0.2), std::exp(-0.1)};
  const PowerLaw law = fit_power_law(x, y);
  BOOST_TEST(std::abs(law.exponent) < 1e-14);
  BOOST_TEST(std::abs(law.exponent_standard_error - std::sqrt(0.03)) < 1e-14);
  BOOST_TEST(law.probability == 1.0);
}

BOOST_AUTO_TEST_CASE(bad_points_are_refused) {
  const std::vector<double> two{1.0, 2.0};
  const std::vector<double> three{1.0, 2.0, 3.0};
  const std::vector<double> same{2.0, 2.0, 2.0};
  const std::vector<double> negative{1.0, -2.0, 3.0};
  BOOST_CHECK_THROW(static_cast<void>(fit_power_law(two, two)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_power_law(two, three)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_power_law(same, three, three)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_power_law(three, negative, three)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_power_law(three, three, two)), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
