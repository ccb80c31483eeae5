#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "iclflow/integrate/ode.hpp"
#include "unit/integrate_systems.hpp"

// Methods for stiff problems: rock4, the symmetric factors of rosenbrock4, and the stepper that chooses.

namespace {

using iclflow::Outcome;
using iclflow::StepperOptions;
using iclflow_tests::Field;

StepperOptions with(const char* stepper, double tolerance = 1e-8) {
  StepperOptions options;
  options.stepper = stepper;
  options.relative_tolerance = tolerance;
  options.absolute_tolerance = tolerance;
  return options;
}

/// y_i' = -rate_i y_i + a slow drive shared by all, with rates spread evenly up to `fastest`: z' = -z beside it.
Field relaxations(int count, double fastest, bool jacobian) {
  const Eigen::VectorXd rates = Eigen::VectorXd::LinSpaced(count, fastest / count, fastest);
  const auto velocity = [rates, count](const Eigen::VectorXd& y, Eigen::VectorXd& rate) {
    rate.resize(count + 1);
    rate.head(count) = -rates.cwiseProduct((y.head(count).array() - y[count]).matrix());
    rate[count] = -y[count];
  };
  const auto derivative = [rates, count](const Eigen::VectorXd&, Eigen::MatrixXd& j) {
    j.diagonal().head(count) = -rates;
    j.col(count).head(count) = rates;
    j(count, count) = -1.0;
  };
  return {Eigen::VectorXd::Ones(count + 1), velocity, jacobian ? Field::Jacobian(derivative) : Field::Jacobian()};
}

/// Exact y_i at time t: the drive e^-t followed with a lag, plus what is left of the start.
double relaxed(double rate, double t) {
  return rate == 1.0 ? (1.0 + t) * std::exp(-t) : (rate * std::exp(-t) - std::exp(-rate * t)) / (rate - 1.0);
}

double error_at_end(const Outcome& outcome, int count, double fastest, double t) {
  const Eigen::VectorXd end = iclflow_tests::state_at(outcome.trajectory, outcome.trajectory.times.size() - 1);
  double error = std::abs(end[count] - std::exp(-t));
  for (int i = 0; i < count; ++i) error = std::max(error, std::abs(end[i] - relaxed(fastest / count * (i + 1), t)));
  return error;
}

/// A gradient flow of a quartic in charts that are not the parameters: -diag(speed) Hess diag(slope) has a symmetric
/// form, which the field gives away or not.
class QuarticFlow : public Field {
 public:
  explicit QuarticFlow(bool symmetric) : Field(start(), velocity_of, jacobian_of), symmetric_(symmetric) {}
  bool symmetrised_jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& matrix, Eigen::VectorXd& scale) const override {
    scale = speeds().cwiseSqrt();
    matrix = scale.asDiagonal() * hessian(y) * scale.asDiagonal();
    return symmetric_;
  }

 private:
  static constexpr int size = 11;
  static Eigen::VectorXd start() { return Eigen::VectorXd::LinSpaced(size, -1.0, 2.0); }
  static Eigen::VectorXd speeds() { return Eigen::VectorXd::LinSpaced(size, 1.0, 300.0); }
  /// loss = |y|^4 / 4 + (sum y)^2 / 2
  static Eigen::MatrixXd hessian(const Eigen::VectorXd& y) {
    Eigen::MatrixXd matrix = Eigen::MatrixXd::Ones(size, size) + 2.0 * y * y.transpose();
    matrix.diagonal().array() += y.squaredNorm();
    return matrix;
  }
  static void velocity_of(const Eigen::VectorXd& y, Eigen::VectorXd& rate) {
    rate = -speeds().cwiseProduct(((y.squaredNorm() * y).array() + y.sum()).matrix());
  }
  static void jacobian_of(const Eigen::VectorXd& y, Eigen::MatrixXd& j) { j = -(speeds().asDiagonal() * hessian(y)); }
  bool symmetric_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_stiff)

// Every member of the family is damped over its whole interval: eigenvalues spread over [-z / dt, 0], one step of dt.
// The coefficients were made for 0.9 on a grid of 20001 points of the interval, between which a polynomial of degree
// 200 may rise by less than (200 pi / 20001)^2 / 8 of that.
BOOST_AUTO_TEST_CASE(rock4_damps_every_eigenvalue_of_a_step_of_any_length) {
  for (const double z :
       {1.0, 4.9, 8.0, 11.0, 20.0, 26.0, 39.0, 54.0, 100.0, 190.0, 350.0, 900.0, 3200.0, 8300.0, 11000.0}) {
    constexpr int count = 400;
    const Eigen::VectorXd rates = Eigen::VectorXd::LinSpaced(count, 0.0, z);
    const Field field(Eigen::VectorXd::Ones(count),
                      [&](const Eigen::VectorXd& y, Eigen::VectorXd& rate) { rate = -rates.cwiseProduct(y); });
    StepperOptions options = with("rock4", 1e6);
    options.step = 1.0;
    const Outcome outcome = integrate(field, {0.0, 1.0}, options);
    BOOST_TEST_REQUIRE(outcome.steps == 1U);
    BOOST_TEST(outcome.rejections == 0U);
    const Eigen::VectorXd end = iclflow_tests::state_at(outcome.trajectory, 1);
    for (int i = 0; i < count; ++i) {
      const double bound = rates[i] > 3.0 ? 0.9 * (1.0 + 1.3e-4) : 1.0;
      BOOST_TEST(std::abs(end[i]) <= bound + 1e-9);
    }
  }
}

// 200 velocities cover what takes an explicit pair z / 3.3 steps of 6.
BOOST_AUTO_TEST_CASE(auto_needs_no_jacobian_where_stability_bounds_the_step) {
  const Field field = relaxations(60, 2000.0, false);
  const Outcome chosen = integrate(field, {0.0, 20.0}, with("auto"));
  const Outcome pair = integrate(field, {0.0, 20.0}, with("dopri5"));
  BOOST_TEST(pair.evaluations > 5.0 * 20.0 * 2000.0 / 3.31);
  BOOST_TEST(chosen.evaluations < pair.evaluations / 5);
  // local errors of 1e-8 die out at rate 1 at least: no more than the steps of one unit of time add up
  BOOST_TEST(error_at_end(chosen, 60, 2000.0, 20.0) < 1e-8 * static_cast<double>(chosen.steps));
}

BOOST_AUTO_TEST_CASE(auto_finds_the_implicit_method_where_that_goes_farther) {
  const Field field = relaxations(6, 1e5, true);
  const Outcome chosen = integrate(field, {0.0, 20.0}, with("auto"));
  const Outcome implicit = integrate(field, {0.0, 20.0}, with("rosenbrock4"));
  BOOST_TEST(chosen.steps < 5 * implicit.steps);
  BOOST_TEST(error_at_end(chosen, 6, 1e5, 20.0) < 1e-8 * static_cast<double>(chosen.steps));
}

BOOST_AUTO_TEST_CASE(auto_stays_with_the_pair_where_accuracy_bounds_the_step) {
  const Field field = iclflow_tests::logistic_and_rotation();
  const Outcome chosen = integrate(field, {0.0, 60.0}, with("auto"));
  const Outcome pair = integrate(field, {0.0, 60.0}, with("dopri5"));
  BOOST_TEST(chosen.evaluations <= pair.evaluations);  // judged by the mean square its steps are no shorter
}

// First steps of all lengths: some end in a state that is a number while their error over its scale is none.
BOOST_AUTO_TEST_CASE(an_error_estimate_that_overflows_is_a_rejection) {
  const Field field(Eigen::VectorXd::Ones(1),
                    [](const Eigen::VectorXd& y, Eigen::VectorXd& rate) { rate = -1e10 * y.array().pow(5).matrix(); });
  for (const char* stepper : {"dopri5", "cash_karp54", "auto"}) {
    for (double exponent = -11.0; exponent < -1.0; exponent += 0.05) {
      StepperOptions options = with(stepper);
      options.step = std::pow(10.0, exponent);
      options.maximum_steps = 10000;
      const Outcome outcome = integrate(field, {0.0, 1.0}, options);
      BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(iclflow::Status::completed));
    }
  }
}

// The same pair in another order of summation: some ten roundings a step of numbers of size 1.
BOOST_AUTO_TEST_CASE(the_pair_of_auto_is_dopri5) {
  const Field field = iclflow_tests::logistic_and_rotation();
  StepperOptions loose = with("auto", 1e6);
  loose.step = loose.maximum_step = 0.05;
  const Outcome chosen = integrate(field, {0.0, 3.0}, loose);
  loose.stepper = "dopri5";
  const Outcome pair = integrate(field, {0.0, 3.0}, loose);
  BOOST_TEST_REQUIRE(chosen.steps == pair.steps);
  const Eigen::VectorXd difference =
      iclflow_tests::state_at(chosen.trajectory, 1) - iclflow_tests::state_at(pair.trajectory, 1);
  BOOST_TEST(difference.cwiseAbs().maxCoeff() <
             10.0 * static_cast<double>(pair.steps) * std::numeric_limits<double>::epsilon());
}

BOOST_AUTO_TEST_CASE(auto_retraces_the_same_bits_from_any_checkpoint_with_events_on_its_way) {
  const std::vector<double> times{0.0, 0.01, 0.3, 1.0, 4.0, 20.0};
  const std::vector<iclflow::Event> events{{"y[3]", 0.1, iclflow::Direction::falling, false}};
  for (const bool jacobian : {false, true}) {
    const Field field = relaxations(6, 2e4, jacobian);
    const Outcome whole = integrate(field, times, with("auto"), events);
    BOOST_TEST_REQUIRE(whole.trajectory.events.size() == 1U);
    // y = e^-t (1 + 1/rate): the crossing is off by the error of y over its slope of 0.1
    const double lag = 2e4 / 6.0 * 4.0;
    BOOST_TEST(std::abs(whole.trajectory.events[0].time - std::log(lag / (lag - 1.0) / 0.1)) < 1e-5);
    for (std::uint64_t stop = 3; stop < whole.steps; stop += 1 + whole.steps / 13) {
      std::uint64_t polls = 0;
      iclflow::Control interrupting;
      interrupting.interrupted = [&] { return polls++ == stop; };
      const Outcome part = integrate(field, times, with("auto"), events, interrupting);
      iclflow::Control resuming;
      resuming.resume = part.last;
      resuming.resume->trajectory = part.trajectory;
      const Outcome resumed = integrate(field, times, with("auto"), events, resuming);
      BOOST_TEST(iclflow_tests::all_digits(resumed.trajectory) == iclflow_tests::all_digits(whole.trajectory));
      BOOST_TEST(resumed.steps == whole.steps);
    }
  }
}

// The two factorisations solve the same equations: rounding only, times the condition of at most 1e4.
BOOST_AUTO_TEST_CASE(symmetric_factors_give_the_steps_of_the_general_ones) {
  const QuarticFlow symmetric(true);
  const QuarticFlow general(false);
  const Outcome one = integrate(symmetric, {0.0, 0.01, 1.0}, with("rosenbrock4"));
  const Outcome other = integrate(general, {0.0, 0.01, 1.0}, with("rosenbrock4"));
  BOOST_TEST(one.steps == other.steps);
  const Eigen::VectorXd difference =
      iclflow_tests::state_at(one.trajectory, 2) - iclflow_tests::state_at(other.trajectory, 2);
  BOOST_TEST(difference.cwiseAbs().maxCoeff() < 1e4 * std::numeric_limits<double>::epsilon());
}

BOOST_AUTO_TEST_SUITE_END()
