#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "iclflow/analysis/late_mean.hpp"
#include "iclflow/analysis/straight_line.hpp"

using namespace iclflow;

namespace {

DynamicsResult losses(const std::vector<std::vector<double>>& members) {
  DynamicsResult result;
  for (const auto& values : members) {
    Trajectory run;
    const auto loss = run.declare("loss", "loss");
    for (const double value : values) {
      run.times.push_back(static_cast<double>(run.times.size()));
      run.append(loss, value);
    }
    result.members.push_back(run);
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(analysis_straight_line)

BOOST_AUTO_TEST_CASE(a_weighted_line_by_hand) {
  // weights 1, 1, 4: x mean (0 + 1 + 8)/6 = 3/2, y mean (1 + 3 + 16)/6 = 10/3; xx = 2.25 + .25 + 1 = 3.5,
  // xy = 1.5 * 7/3 + .5 * 1/3 + 4 * .5 * 2/3 = 5; slope 10/7, variance 2/7.
  const StraightLine line =
      fit_straight_line(std::vector<double>{0, 1, 2}, std::vector<double>{1, 3, 4}, std::vector<double>{1, 1, 0.5});
  BOOST_TEST(std::abs(line.slope - 10.0 / 7.0) < 1e-14);
  BOOST_TEST(std::abs(line.slope_standard_error - std::sqrt(2.0 / 7.0)) < 1e-14);
  BOOST_TEST(std::abs(line.intercept - (10.0 / 3.0 - 15.0 / 7.0)) < 1e-14);
  BOOST_TEST(std::abs(line.intercept_standard_error - std::sqrt(1.0 / 6.0 + 2.25 / 3.5)) < 1e-14);
  // residuals (-4, 8, -1)/21 * ... : chi^2 = sum w y'^2 - slope * xy with y' about the mean
  const double yy = 49.0 / 9.0 + 1.0 / 9.0 + 4.0 * 4.0 / 9.0;
  BOOST_TEST(std::abs(line.chi_square - (yy - 50.0 / 7.0)) < 1e-13);
}

BOOST_AUTO_TEST_CASE(a_logarithm_is_a_line_in_ln_x) {
  const std::vector<double> x{1, 10, 100};
  std::vector<double> y;
  for (const double value : x) y.push_back(5.0 - 2.0 * std::log(value));
  const StraightLine line = fit_logarithm(x, y);
  BOOST_TEST(std::abs(line.slope + 2.0) < 1e-14);
  BOOST_TEST(std::abs(line.intercept - 5.0) < 1e-13);
  BOOST_CHECK_THROW(static_cast<void>(fit_logarithm(std::vector<double>{0, 1, 2}, y)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(bad_points_are_refused) {
  const std::vector<double> y{1, 2, 3};
  const std::vector<double> gap{1, std::numeric_limits<double>::quiet_NaN(), 3};
  BOOST_CHECK_THROW(static_cast<void>(fit_straight_line(gap, y)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_straight_line(y, gap)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(fit_straight_line(y, y, std::vector<double>{1, 0, 1})), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(late_means) {
  BOOST_TEST(late_mean(std::vector<double>{9, 9, 1, 2, 3}) == 2.0);  // the last three of five
  BOOST_TEST(late_mean(std::vector<double>{9, 1, 3}) == 2.0);
  BOOST_TEST(late_mean(std::vector<double>{5}) == 5.0);
  const Estimate mean = late_mean(losses({{9, 9, 1, 2, 3}, {9, 9, 4, 4, 4}, {}}), "loss");
  BOOST_TEST(mean.value == 3.0);
  BOOST_TEST(std::abs(*mean.standard_error - 1.0) < 1e-15);  // deviation sqrt 2 over sqrt 2
  BOOST_TEST(!late_mean(losses({{1, 2}}), "loss").standard_error.has_value());
  BOOST_CHECK_THROW(static_cast<void>(late_mean(losses({{}}), "loss")), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
