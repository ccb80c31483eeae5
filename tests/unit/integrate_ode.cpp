#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

#include "iclflow/integrate/ode.hpp"
#include "unit/integrate_systems.hpp"

namespace {

using iclflow::integrate;
using iclflow::Status;
using iclflow::StepperOptions;
using iclflow_tests::Field;

StepperOptions with(std::string_view stepper, double tolerance = 1e-8) {
  StepperOptions options;
  options.stepper = std::string(stepper);
  options.step = 0.01;
  options.relative_tolerance = tolerance;
  options.absolute_tolerance = 1e-3 * tolerance;
  return options;
}

/// Step sizes of a run, from the fractions it reports.
std::vector<double> step_sizes(const Field& field, double final, const StepperOptions& options) {
  std::vector<double> sizes;
  double before = 0.0;
  iclflow::Control control;
  control.progress = [&](double fraction) {
    sizes.push_back(fraction * final - before);
    before = fraction * final;
  };
  BOOST_TEST(static_cast<int>(integrate(field, {0.0, final}, options, {}, control).status) ==
             static_cast<int>(Status::completed));
  return sizes;
}

Field decay(double rate) {
  return {Eigen::VectorXd::Constant(1, 1.0), [rate](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = -rate * y; },
          [rate](const Eigen::VectorXd&, Eigen::MatrixXd& j) { j(0, 0) = -rate; }};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_ode)

BOOST_AUTO_TEST_CASE(adaptive_steppers_meet_the_tolerance_and_count_velocities) {
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    if (!info.adaptive) continue;
    BOOST_TEST_CONTEXT(info.name) {
      const Field field = iclflow_tests::logistic_and_rotation();
      for (const double tolerance : {1e-5, 1e-9}) {
        field.calls = 0;
        const auto outcome = integrate(field, {0.0, 2.0, 5.0}, with(info.name, tolerance));
        BOOST_TEST(outcome.evaluations == field.calls);
        // local errors of size tolerance add up: at most one per step, and nothing amplifies them here
        const double bound = tolerance * static_cast<double>(outcome.steps);
        for (std::size_t sample : {1U, 2U}) {
          const Eigen::VectorXd error = iclflow_tests::state_at(outcome.trajectory, sample) -
                                        iclflow_tests::logistic_and_rotation_at(outcome.trajectory.times[sample]);
          BOOST_TEST(error.cwiseAbs().maxCoeff() < bound);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sample_times_are_hit_exactly_and_do_not_shorten_the_natural_step) {
  const Field field = iclflow_tests::logistic_and_rotation();
  const std::vector<double> plain = {0.0, 4.0, 8.0};
  const std::vector<double> close = {0.0, 4.0, 4.0 + 1e-9, 8.0};
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    BOOST_TEST_CONTEXT(info.name) {
      const auto options = with(info.name);
      const auto without = integrate(field, plain, options);
      const auto outcome = integrate(field, close, options);
      BOOST_TEST(outcome.trajectory.times == close, boost::test_tools::per_element());
      // growing back from 1e-9 to a step of about 0.1 by factors of at most 5 would take 12 steps
      BOOST_TEST(outcome.steps <= without.steps + 3);
      BOOST_TEST(outcome.steps > without.steps);
    }
  }
}

BOOST_AUTO_TEST_CASE(fixed_steps_are_equal_and_no_longer_than_asked) {
  auto options = with("rk4");
  options.step = 0.1;
  BOOST_TEST(integrate(decay(1.0), {0.0, 1.0}, options).steps == 10U);
  options.step = 0.3;
  const std::vector<double> sizes = step_sizes(decay(1.0), 1.0, options);
  BOOST_TEST(sizes.size() == 4U);
  for (const double size : sizes) BOOST_TEST(std::abs(size - 0.25) < 1e-15);  // rounding of the fraction
}

BOOST_AUTO_TEST_CASE(steps_respect_the_cap_and_grow_at_most_fivefold) {
  auto options = with("dopri5");
  options.step = 1e-6;
  options.maximum_step = 0.05;
  const std::vector<double> sizes = step_sizes(decay(1.0), 2.0, options);
  double growth = 0.0;
  for (std::size_t i = 1; i < sizes.size(); ++i) growth = std::max(growth, sizes[i] / sizes[i - 1]);
  BOOST_TEST(std::abs(sizes.front() - 1e-6) < 1e-15);
  BOOST_TEST(std::abs(growth - 5.0) < 1e-6);  // sizes are differences of times: rounding 1e-16 over 1e-6
  BOOST_TEST(*std::max_element(sizes.begin(), sizes.end()) < 0.05 * (1.0 + 1e-9));
}

BOOST_AUTO_TEST_CASE(a_pole_ends_with_a_failure_and_keeps_the_samples_before_it) {
  const Field field(
      Eigen::VectorXd::Constant(1, 1.0),  // y = 1 / (1 - t)
      [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = y.cwiseProduct(y); },
      [](const Eigen::VectorXd& y, Eigen::MatrixXd& j) { j(0, 0) = 2.0 * y[0]; });
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    BOOST_TEST_CONTEXT(info.name) {
      const auto outcome = integrate(field, {0.0, 0.5, 2.0}, with(info.name, 1e-6));
      BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
      BOOST_TEST_MESSAGE(outcome.message);
      BOOST_TEST(outcome.trajectory.samples() == 2U);
      BOOST_TEST(outcome.trajectory["loss"].values.size() == 2U);
      for (const char* part : {"t = ", "step ", "y[0]", "last finite loss"}) {
        BOOST_TEST(outcome.message.find(part) != std::string::npos);
      }
      BOOST_TEST(std::isfinite(outcome.last.state[0]));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_step_into_nan_is_rejected_not_accepted) {
  // the second component turns NaN when the first, y = t, passes 1
  const Field field(
      Eigen::Vector2d(0.0, 0.0),
      [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = Eigen::Vector2d(1.0, 0.0 * std::sqrt(1.0 - y[0])); },
      [](const Eigen::VectorXd&, Eigen::MatrixXd&) {});
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    BOOST_TEST_CONTEXT(info.name) {
      const auto outcome = integrate(field, {0.0, 0.9, 3.0}, with(info.name));
      BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
      BOOST_TEST(outcome.message.find("not finite") != std::string::npos);
      BOOST_TEST(outcome.message.find("y[1]") != std::string::npos);
      BOOST_TEST(outcome.trajectory.samples() == 2U);
      // halving the step comes as near to 1 as the limit on the step lets it, up to the rounding of y = t summed over
      // the steps; a fixed step stops one step before
      // CVODE steps on by itself: it may be late by its own tolerance
      BOOST_TEST(outcome.last.time < 1.0 + (info.name == "cvode" ? 1e-8 : 1e-12));
      BOOST_TEST(outcome.last.time > (info.adaptive ? 1.0 - 1e-12 : 1.0 - 0.011));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_dynamics_may_refuse_a_stage_and_its_words_reach_the_message) {
  const Field field(Eigen::VectorXd::Zero(1), [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) {
    if (y[0] > 1.0) throw std::domain_error("the closure ends at one");
    dy = Eigen::VectorXd::Constant(1, 1.0);
  });
  const auto outcome = integrate(field, {0.0, 2.0}, with("dopri5"));
  BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
  BOOST_TEST(outcome.message.find("the closure ends at one") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(every_limit_says_that_it_was_reached) {
  const Field fast = decay(1e6);
  auto options = with("dopri5");
  options.step = 0.5;
  options.minimum_step = 0.1;
  const auto smallest = integrate(fast, {0.0, 1.0}, options);
  BOOST_TEST(smallest.message.find("minimum_step = 0.1") != std::string::npos);
  BOOST_TEST(smallest.message.find("y[0]") != std::string::npos);

  options.minimum_step = 0.0;
  options.maximum_rejections = 3;
  const auto rejected = integrate(fast, {0.0, 1.0}, options);
  BOOST_TEST(rejected.message.find("maximum_rejections = 3") != std::string::npos);
  BOOST_TEST(rejected.rejections == 3U);
  BOOST_TEST(rejected.steps == 0U);

  for (const char* stepper : {"dopri5", "rk4"}) {
    auto few = with(stepper);
    few.maximum_steps = 7;
    few.maximum_step = 0.01;
    const auto outcome = integrate(decay(1.0), {0.0, 0.05, 1.0}, few);
    BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
    BOOST_TEST(outcome.message.find("maximum_steps = 7") != std::string::npos);
    BOOST_TEST(outcome.steps == 7U);
    BOOST_TEST(outcome.trajectory.samples() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(interruption_is_polled_every_step_and_keeps_what_there_was) {
  int polls = 0;
  iclflow::Control control;
  control.interrupted = [&polls] { return ++polls > 15; };
  const auto outcome = integrate(decay(1.0), {0.0, 0.1, 1.0}, with("rk4"), {}, control);
  BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::interrupted));
  BOOST_TEST(outcome.steps == 15U);
  BOOST_TEST(outcome.trajectory.samples() == 2U);
  BOOST_TEST(std::abs(outcome.last.time - 0.15) < 1e-12);
  BOOST_TEST(outcome.message.empty());
}

BOOST_AUTO_TEST_CASE(a_stiff_problem_takes_few_implicit_steps) {
  // y0 relaxes at rate 1e5 onto the slow y1' = -y1: an explicit method needs about 1e5 t / 3.3 steps
  const double rate = 1e5;
  const Field field(
      Eigen::Vector2d(0.0, 1.0),
      [rate](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = Eigen::Vector2d(-rate * (y[0] - y[1]), -y[1]); },
      [rate](const Eigen::VectorXd&, Eigen::MatrixXd& j) { j << -rate, rate, 0.0, -1.0; });
  auto options = with("rosenbrock4", 1e-6);
  options.step = 0.0;
  const auto implicit = integrate(field, {0.0, 2.0}, options);
  options.stepper = "dopri5";
  const auto explicit_ = integrate(field, {0.0, 2.0}, options);
  BOOST_TEST(implicit.steps < 200U);
  BOOST_TEST(explicit_.steps > 20000U);
  // exact: y0 = (e^{-t} - e^{-rate t}) rate / (rate - 1)
  const double exact = std::exp(-2.0) * rate / (rate - 1.0);
  BOOST_TEST(std::abs(iclflow_tests::state_at(implicit.trajectory, 1)[0] - exact) < 2e-4 * exact);  // 200 steps of 1e-6
}

BOOST_AUTO_TEST_CASE(extrapolation_raises_its_order_with_the_tolerance) {
  const Field field = iclflow_tests::logistic_and_rotation();
  const auto loose = integrate(field, {0.0, 20.0}, with("bulirsch_stoer", 1e-5));
  const auto tight = integrate(field, {0.0, 20.0}, with("bulirsch_stoer", 1e-11));
  // at its least order, 4, a tolerance 1e6 times smaller would cost 1e6^(1/5) = 16 times as much
  BOOST_TEST(tight.evaluations < 5U * loose.evaluations);
}

BOOST_AUTO_TEST_CASE(a_collapsed_logarithm_cannot_excuse_its_own_error) {
  // y = log x of the logistic x' = x (1 - x); tolerance on x. A first step of 30 throws y to minus thousands, where
  // any error of y would be allowed.
  class Logarithm final : public Field {
   public:
    using Field::Field;
    void error_scale(const Eigen::VectorXd& y, double absolute, double relative,
                     Eigen::VectorXd& scale) const override {
      scale = (relative + absolute * (-y.array()).exp()).matrix();
    }
  };
  const Logarithm field(
      Eigen::VectorXd::Constant(1, std::log(0.5)),
      [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = (1.0 - y.array().exp()).matrix(); },
      [](const Eigen::VectorXd& y, Eigen::MatrixXd& j) { j(0, 0) = -std::exp(y[0]); });
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    if (!info.adaptive) continue;
    BOOST_TEST_CONTEXT(info.name) {
      auto options = with(info.name, 1e-6);
      options.step = 30.0;
      const auto outcome = integrate(field, {0.0, 30.0, 200.0}, options);
      if (info.name != "cvode") BOOST_TEST(outcome.rejections > 0U);  // CVODE rejects inside
      // the equilibrium x = 1 forgets earlier errors: what is left is of the size of the last local ones
      BOOST_TEST(std::abs(std::exp(iclflow_tests::state_at(outcome.trajectory, 2)[0]) - 1.0) < 1e-5);
    }
  }
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused) {
  const Field field = decay(1.0);
  const Field plain(Eigen::VectorXd::Zero(1), [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = y; });
  const auto refuse = [](const Field& system, const std::vector<double>& times, const StepperOptions& options) {
    BOOST_CHECK_THROW(static_cast<void>(integrate(system, times, options)), std::invalid_argument);
  };
  refuse(field, {0.0, 1.0}, with("dopri6"));
  refuse(plain, {0.0, 1.0}, with("rosenbrock4"));
  refuse(field, {}, with("dopri5"));
  refuse(field, {0.0, 1.0, 1.0}, with("dopri5"));
  refuse(field, {0.0, std::nan("")}, with("dopri5"));
  auto options = with("euler");
  options.step = 0.0;
  refuse(field, {0.0, 1.0}, options);
  refuse(field, {0.0, 1.0}, with("dopri5", 0.0));
  options = with("dopri5");
  options.minimum_step = 1.0;
  options.maximum_step = 0.1;
  refuse(field, {0.0, 1.0}, options);
}

BOOST_AUTO_TEST_CASE(a_start_that_is_not_finite_fails_at_once) {
  const Field field(Eigen::Vector2d(1.0, std::nan("")), [](const Eigen::VectorXd& y, Eigen::VectorXd& dy) { dy = -y; });
  const auto outcome = integrate(field, {0.0, 1.0}, with("dopri5"));
  BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
  BOOST_TEST(outcome.message.find("y[1]") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
