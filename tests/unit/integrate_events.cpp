#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

#include "iclflow/integrate/ode.hpp"
#include "unit/integrate_systems.hpp"

namespace {

using iclflow::Direction;
using iclflow::Event;
using iclflow::integrate;
using iclflow::StepperOptions;
using iclflow_tests::Field;

/// y[0] = t exactly; y[1] = 1 + (t - 1)^2 to rounding, by any method of order two or more.
Field clock_and_parabola() {
  return {Eigen::Vector2d(0.0, 2.0),
          [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = Eigen::Vector2d(1.0, 2.0 * (y[0] - 1.0)); }};
}

StepperOptions equal_steps(const std::string& stepper, double step) {
  StepperOptions options;
  options.stepper = stepper;
  options.step = step;
  options.maximum_step = step;
  options.relative_tolerance = 1e6;
  options.absolute_tolerance = 1e6;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_events)

BOOST_AUTO_TEST_CASE(times_do_not_depend_on_tolerance_step_cap_or_samples) {
  const Field field = iclflow_tests::logistic_and_rotation();
  const std::vector<Event> events = {{"y[0]", 0.5, Direction::rising, false}};
  const double exact = std::log(9.0);  // 1 / (1 + 9 e^-t) = 1/2
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    if (!info.adaptive) continue;
    BOOST_TEST_CONTEXT(info.name) {
      for (const double tolerance : {1e-5, 1e-8, 1e-11}) {
        for (const double cap : {0.05, 0.3, 10.0}) {
          for (const auto& times : {std::vector<double>{0.0, 5.0}, std::vector<double>{0.0, 2.1, 2.3, 5.0}}) {
            StepperOptions options;
            options.stepper = std::string(info.name);
            options.relative_tolerance = tolerance;
            options.maximum_step = cap;
            const auto outcome = integrate(field, times, options, events);
            BOOST_TEST_REQUIRE(outcome.trajectory.events.size() == 1U);
            // local errors of at most tolerance * y < tolerance add up over the steps; slope y' = 1/4 at the crossing;
            // rounding of t
            const double bound = 4.0 * tolerance * static_cast<double>(outcome.steps) + 1e-15 * 10.0;
            BOOST_TEST(std::abs(outcome.trajectory.events[0].time - exact) < bound);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(fixed_steps_locate_to_the_error_of_the_method) {
  const Field field = iclflow_tests::logistic_and_rotation();
  const std::vector<Event> events = {{"y[0]", 0.5, Direction::rising, false}};
  const auto error = [&](double step) {
    const auto outcome = integrate(field, {0.0, 5.0}, equal_steps("rk4", step), events);
    return std::abs(outcome.trajectory.events.at(0).time - std::log(9.0));
  };
  // fourth order: halving the step divides by 16, to within the next term, here below a factor 2
  const double ratio = error(0.2) / error(0.1);
  BOOST_TEST(ratio > 8.0);
  BOOST_TEST(ratio < 32.0);
}

BOOST_AUTO_TEST_CASE(two_crossings_inside_one_step_are_both_seen) {
  // y[1] = cos t goes below -0.995 from pi - a to pi + a, a = arccos 0.995 = 0.1: inside the step from 3 to 3.5
  const Field field = iclflow_tests::logistic_and_rotation();
  const double a = std::acos(0.995);
  const double pi = std::acos(-1.0);
  for (const bool rising_first : {true, false}) {
    std::vector<Event> events = {{"y[1]", -0.995, Direction::rising, false},
                                 {"y[1]", -0.995, Direction::falling, false}};
    if (!rising_first) std::swap(events[0], events[1]);
    const auto outcome = integrate(field, {0.0, 4.0}, equal_steps("fehlberg78", 0.5), events);
    BOOST_TEST(outcome.steps == 8U);
    BOOST_TEST_REQUIRE(outcome.trajectory.events.size() == 2U);
    // error of the states about 1e-9 (8th order, step 1/2), slope sin a = 0.1
    BOOST_TEST(outcome.trajectory.events[0].direction == "falling");
    BOOST_TEST(std::abs(outcome.trajectory.events[0].time - (pi - a)) < 1e-7);
    BOOST_TEST(outcome.trajectory.events[1].direction == "rising");
    BOOST_TEST(std::abs(outcome.trajectory.events[1].time - (pi + a)) < 1e-7);
  }
}

BOOST_AUTO_TEST_CASE(touching_a_level_or_resting_on_it_is_no_crossing) {
  const Field field = clock_and_parabola();
  for (const double level : {1.0, 2.0}) {  // the vertex; the start and, by symmetry, t = 2
    for (const Direction direction : {Direction::falling, Direction::rising}) {
      const auto outcome =
          integrate(field, {0.0, 0.7, 1.0, 2.0}, equal_steps("rk4", 0.25), {{"y[1]", level, direction, false}});
      BOOST_TEST(outcome.trajectory.events.empty());
    }
  }
  const Field rest(Eigen::VectorXd::Constant(1, 0.3),
                   [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = 0.0 * y; });
  BOOST_TEST(integrate(rest, {0.0, 9.0}, {}, {{"y[0]", 0.3, Direction::falling, false}}).trajectory.events.empty());
}

BOOST_AUTO_TEST_CASE(a_plateau_above_the_level_fires_nothing_though_steps_are_rejected) {
  // y = e^{-20 t}: a first step of 1 is rejected time and again, its candidates lie far below zero
  const Field field(Eigen::VectorXd::Constant(1, 1.0),
                    [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = -20.0 * y; });
  StepperOptions options;
  options.step = 1.0;
  const auto outcome = integrate(field, {0.0, 1.0}, options, {{"y[0]", -1.0, Direction::falling, false}});
  BOOST_TEST(outcome.rejections > 0U);
  BOOST_TEST(outcome.trajectory.events.empty());
}

BOOST_AUTO_TEST_CASE(landing_exactly_on_a_level_fires_once_when_it_is_left_on_the_other_side) {
  const auto outcome = integrate(clock_and_parabola(), {0.0, 0.5, 1.0}, equal_steps("euler", 0.25),
                                 {{"y[0]", 0.5, Direction::rising, false}});
  BOOST_TEST_REQUIRE(outcome.trajectory.events.size() == 1U);
  BOOST_TEST(outcome.trajectory.events[0].time == 0.5);
}

BOOST_AUTO_TEST_CASE(events_of_one_step_come_in_order_of_time_and_a_terminal_one_ends_the_run) {
  const std::vector<Event> events = {{"y[0]", 0.9, Direction::rising, false},
                                     {"y[0]", 0.8, Direction::rising, true},
                                     {"y[0]", 0.6, Direction::rising, false}};
  const auto outcome = integrate(clock_and_parabola(), {0.0, 0.5, 1.0, 2.0}, equal_steps("rk4", 0.5), events);
  const auto& run = outcome.trajectory;
  BOOST_TEST_REQUIRE(run.events.size() == 2U);  // 0.9 comes after the end
  BOOST_TEST(std::abs(run.events[0].time - 0.6) < 1e-15);
  BOOST_TEST(std::abs(run.events[1].time - 0.8) < 1e-15);
  BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(iclflow::Status::completed));
  BOOST_TEST_REQUIRE(run.samples() == 3U);
  BOOST_TEST(run.times.back() == run.events[1].time);
  BOOST_TEST(std::abs(run["y"].last()[0] - 0.8) < 1e-15);
  BOOST_TEST(std::abs(run["y"].last()[1] - 1.04) < 1e-15);
}

BOOST_AUTO_TEST_CASE(an_unknown_quantity_is_refused) {
  BOOST_CHECK_THROW(
      static_cast<void>(integrate(clock_and_parabola(), {0.0, 1.0}, {}, {{"mu[0][9]", 0.5, Direction::rising, false}})),
      std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
