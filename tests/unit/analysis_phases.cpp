#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "iclflow/analysis/monotone_cubic.hpp"
#include "iclflow/analysis/phases.hpp"

BOOST_AUTO_TEST_SUITE(analysis_phases)

namespace {

constexpr double rounding = 1e-13;  // a few operations on numbers of order one to ten

// A logistic fall from `high` to `low` around t = 10 with width 1.
struct Sampled {
  std::vector<double> times;
  std::vector<double> loss;
};
Sampled logistic(double spacing, double high, double low) {
  Sampled curve;
  for (int k = 0; k * spacing <= 30.0; ++k) {
    const double t = k * spacing;
    curve.times.push_back(t);
    curve.loss.push_back(low + (high - low) / (1.0 + std::exp(t - 10.0)));
  }
  return curve;
}

}  // namespace

BOOST_AUTO_TEST_CASE(monotone_cubic_reproduces_lines_and_ends) {
  const std::vector<double> x{0.0, 1.0, 1.5, 4.0};
  const std::vector<double> y{1.0, 3.0, 4.0, 9.0};  // y = 1 + 2 x
  const iclflow::MonotoneCubic line(x, y);
  for (const double t : {0.0, 0.3, 1.2, 3.9, 4.0}) BOOST_TEST(std::abs(line(t) - (1.0 + 2.0 * t)) < rounding);
  BOOST_TEST(line(-1.0) == 1.0);
  BOOST_TEST(line(9.0) == 9.0);
  BOOST_TEST(std::abs(line.crossing(3, 8.0) - 3.5) < rounding);
}

BOOST_AUTO_TEST_CASE(monotone_cubic_has_the_published_slopes) {
  // Interior slope at x = 1 with unit spacing and secants 1, 3: harmonic mean 6 / (3/1 + 3/3) = 1.5; end slopes
  // (3*1 - 3)/2 = 0 and (3*3 - 1)/2 = 4. Value at 0.5: (0 + 1)/2 + (0 - 1.5)/8; at 1.5: (1 + 4)/2 + (1.5 - 4)/8.
  const std::vector<double> x{0.0, 1.0, 2.0};
  const std::vector<double> y{0.0, 1.0, 4.0};
  const iclflow::MonotoneCubic curve(x, y);
  BOOST_TEST(std::abs(curve(0.5) - 0.3125) < rounding);
  BOOST_TEST(std::abs(curve(1.5) - 2.1875) < rounding);
}

BOOST_AUTO_TEST_CASE(monotone_cubic_does_not_overshoot_a_step) {
  const std::vector<double> x{0.0, 1.0, 2.0, 2.1, 3.0, 4.0};
  const std::vector<double> y{5.0, 5.0, 5.0, 1.0, 1.0, 1.0};
  const iclflow::MonotoneCubic curve(x, y);
  for (int k = 0; k <= 400; ++k) {
    BOOST_TEST(curve(0.01 * k) <= 5.0 + rounding);
    BOOST_TEST(curve(0.01 * k) >= 1.0 - rounding);
  }
}

BOOST_AUTO_TEST_CASE(monotone_cubic_refuses_what_it_cannot_read) {
  const std::vector<double> x{0.0, 1.0, 1.0};
  const std::vector<double> y{0.0, 1.0, 2.0};
  BOOST_CHECK_THROW(iclflow::MonotoneCubic(x, y), std::invalid_argument);
  BOOST_CHECK_THROW(iclflow::MonotoneCubic({}, {}), std::invalid_argument);
  BOOST_CHECK_THROW(iclflow::MonotoneCubic(std::span(x).first(2), y), std::invalid_argument);
  const std::vector<double> two{0.0, 1.0};
  const iclflow::MonotoneCubic curve(two, two);
  BOOST_CHECK_THROW(static_cast<void>(curve.crossing(1, 3.0)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(phases_of_a_straight_fall_are_exact) {
  const std::vector<double> times{0.0, 2.0, 7.0, 10.0};
  const std::vector<double> loss{10.0, 8.0, 3.0, 0.0};
  const iclflow::Phases phases = iclflow::find_phases(times, loss, 0.0);
  BOOST_TEST_REQUIRE(phases.emergence_end.has_value());
  BOOST_TEST(std::abs(*phases.warm_up_end - 0.5) < rounding);
  BOOST_TEST(std::abs(*phases.emergence_time - 5.0) < rounding);
  BOOST_TEST(std::abs(*phases.emergence_end - 9.5) < rounding);
}

BOOST_AUTO_TEST_CASE(phases_of_a_logistic_fall) {
  // 1/(1 + e^(t-10)) passes 1 - f at t = 10 + ln(f/(1-f)), up to e^-10 for the finite start. Error: curvature of the
  // interpolant at least third order, so 0.25^3 times a third derivative of 1/8 over the slope 1/4 .. 0.0475.
  const Sampled curve = logistic(0.25, 7.0, 3.0);
  const iclflow::Phases phases = iclflow::find_phases(curve.times, curve.loss, 3.0);
  BOOST_TEST_REQUIRE(phases.emergence_end.has_value());
  BOOST_TEST(std::abs(*phases.warm_up_end - (10.0 + std::log(0.05 / 0.95))) < 2e-3);
  BOOST_TEST(std::abs(*phases.emergence_time - 10.0) < 2e-3);
  BOOST_TEST(std::abs(*phases.emergence_end - (10.0 + std::log(0.95 / 0.05))) < 2e-3);
}

BOOST_AUTO_TEST_CASE(phases_take_the_first_crossing_and_leave_out_the_unreached) {
  const std::vector<double> times{0.0, 1.0, 2.0, 3.0, 4.0};
  const std::vector<double> loss{10.0, 4.0, 6.0, 4.0, 2.0};
  const iclflow::Phases phases = iclflow::find_phases(times, loss, 0.0);
  BOOST_TEST_REQUIRE(phases.emergence_time.has_value());
  BOOST_TEST(*phases.emergence_time < 1.0);
  BOOST_TEST(!phases.emergence_end.has_value());
  const iclflow::Phases rising = iclflow::find_phases(times, loss, 11.0);
  BOOST_TEST(!rising.warm_up_end.has_value());
  BOOST_TEST(!iclflow::find_phases({}, {}, 0.0).warm_up_end.has_value());
  BOOST_TEST(!iclflow::find_phases(std::span(times).first(1), std::span(loss).first(1), 0.0).warm_up_end.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
