#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

#include "iclflow/integrate/descent.hpp"
#include "unit/integrate_systems.hpp"

namespace {

using iclflow::Checkpoint;
using iclflow::Control;
using iclflow::descend;
using iclflow::Direction;
using iclflow::Event;
using iclflow::Outcome;
using iclflow::Status;

/// Loss a theta^2 / 2 with a gradient noise that depends on the step only: theta <- (1 - eta a) theta - eta
/// noise(step). Quantities: "loss", "theta".
class NoisyParabola final : public iclflow::DescentSystem {
 public:
  NoisyParabola(double curvature, double noise) : curvature_(curvature), noise_(noise) {}
  [[nodiscard]] Eigen::VectorXd initial() const override { return Eigen::VectorXd::Constant(1, 1.0); }
  void declare(iclflow::Trajectory& run) const override {
    run.declare("loss", "half curvature times the square");
    run.declare("theta", "the weight");
  }
  void observe(const Eigen::VectorXd& theta, iclflow::Trajectory& run) const override {
    run.append(0, quantity("loss", theta));
    run.append(1, theta[0]);
  }
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& theta) const override {
    if (name == "loss") return 0.5 * curvature_ * theta.squaredNorm();
    if (name == "theta") return theta[0];
    throw std::invalid_argument("unknown quantity '" + name + "'");
  }
  void gradient(std::uint64_t step, const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) const override {
    gradient = curvature_ * theta;
    gradient[0] += noise_ * std::sin(static_cast<double>(step * step));
  }

 private:
  double curvature_;
  double noise_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_descent)

BOOST_AUTO_TEST_CASE(samples_are_taken_at_the_nearest_steps) {
  const std::vector<std::uint64_t> expected = {0, 2, 3, 10};
  BOOST_TEST(iclflow::sample_steps({0.0, 0.19, 0.31, 1.0}, 0.1) == expected, boost::test_tools::per_element());
  // 0.15 / 0.05 is 2.9999999999999996: the nearest step, not the one below
  BOOST_TEST(iclflow::sample_steps({0.15}, 0.05).front() == 3U);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::sample_steps({0.0, 0.04, 0.1}, 0.1)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::sample_steps({}, 0.1)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::sample_steps({0.0, 1.0}, 0.0)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::sample_steps({-1.0, 1.0}, 0.1)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::sample_steps({0.0, std::nan("")}, 0.1)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_weights_are_the_exact_iterates_and_times_are_those_of_the_steps) {
  const Outcome outcome = descend(NoisyParabola(1.0, 0.0), 0.1, {0.0, 0.52, 2.0});
  const auto& run = outcome.trajectory;
  BOOST_TEST(outcome.steps == 20U);
  BOOST_TEST(outcome.evaluations == 20U);
  BOOST_TEST(run.times[1] == 5 * 0.1);
  for (const std::size_t sample : {0U, 1U, 2U}) {
    const double steps = std::round(run.times[sample] / 0.1);
    // twenty products, each rounded twice
    BOOST_TEST(std::abs(run["theta"].at(sample)[0] - std::pow(0.9, steps)) < 40 * 1.2e-16);
  }
}

BOOST_AUTO_TEST_CASE(the_loss_is_interpolated_between_samples_and_other_quantities_between_steps) {
  const std::vector<Event> events = {{"loss", 0.3, Direction::falling, false},
                                     {"theta", 0.7, Direction::falling, false}};
  const Outcome outcome = descend(NoisyParabola(1.0, 0.0), 0.1, {0.0, 1.0, 2.0}, events);
  BOOST_TEST_REQUIRE(outcome.trajectory.events.size() == 2U);
  // loss: 0.5 at t = 0, 0.5 * 0.9^20 at t = 1; theta: 0.9^3 = 0.729 and 0.9^4 = 0.6561. To rounding.
  const double loss_time = (0.5 - 0.3) / (0.5 - 0.5 * std::pow(0.9, 20));
  const double theta_time = 0.3 + 0.1 * (0.729 - 0.7) / (0.729 - 0.6561);
  BOOST_TEST(outcome.trajectory.events[0].quantity == "theta");
  BOOST_TEST(std::abs(outcome.trajectory.events[0].time - theta_time) < 1e-14);
  BOOST_TEST(outcome.trajectory.events[1].quantity == "loss");
  BOOST_TEST(std::abs(outcome.trajectory.events[1].time - loss_time) < 1e-14);
}

BOOST_AUTO_TEST_CASE(a_terminal_event_ends_with_a_sample) {
  const Outcome theta =
      descend(NoisyParabola(1.0, 0.0), 0.1, {0.0, 1.0, 2.0}, {{"theta", 0.7, Direction::falling, true}});
  BOOST_TEST(theta.steps == 4U);
  BOOST_TEST(theta.trajectory.samples() == 2U);
  BOOST_TEST(theta.trajectory.times.back() == 4 * 0.1);
  const Outcome loss =
      descend(NoisyParabola(1.0, 0.0), 0.1, {0.0, 1.0, 2.0}, {{"loss", 0.3, Direction::falling, true}});
  BOOST_TEST(loss.steps == 10U);
  BOOST_TEST(loss.trajectory.samples() == 2U);
  BOOST_TEST(static_cast<int>(loss.status) == static_cast<int>(Status::completed));
}

BOOST_AUTO_TEST_CASE(a_resumed_descent_retraces_the_same_bits) {
  const NoisyParabola system(1.0, 8.0);
  const std::vector<double> times = {0.0, 0.2, 0.4, 0.7, 1.0, 1.3, 1.7, 2.2, 3.0};
  const std::vector<Event> events = {{"theta", 0.0, Direction::falling, false},
                                     {"theta", 0.0, Direction::rising, false},
                                     {"loss", 0.05, Direction::falling, false},
                                     {"loss", 0.05, Direction::rising, false}};
  std::vector<Checkpoint> checkpoints;
  Control watching;
  watching.checkpoint = [&](const Checkpoint& checkpoint) { checkpoints.push_back(checkpoint); };
  const Outcome whole = descend(system, 0.1, times, events, watching);
  BOOST_TEST(checkpoints.size() == times.size());
  BOOST_TEST(whole.trajectory.events.size() == 4U);
  for (std::uint64_t stop = 0; stop < 30; ++stop) {
    std::uint64_t polls = 0;
    Control interrupting;
    interrupting.interrupted = [&] { return polls++ == stop; };
    const Outcome part = descend(system, 0.1, times, events, interrupting);
    BOOST_TEST(static_cast<int>(part.status) == static_cast<int>(Status::interrupted));
    checkpoints.push_back(part.last);
    checkpoints.back().trajectory = part.trajectory;
  }
  for (const Checkpoint& checkpoint : checkpoints) {
    Control resuming;
    resuming.resume = checkpoint;
    const Outcome resumed = descend(system, 0.1, times, events, resuming);
    BOOST_TEST(iclflow_tests::all_digits(resumed.trajectory) == iclflow_tests::all_digits(whole.trajectory));
    BOOST_TEST(resumed.evaluations == whole.evaluations);
    BOOST_TEST((resumed.last.state == whole.last.state));
  }
  Control elsewhere;
  elsewhere.resume = checkpoints[1];
  BOOST_CHECK_THROW(static_cast<void>(descend(system, 0.2, times, events, elsewhere)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(divergence_ends_with_a_sentence_and_keeps_the_samples) {
  // theta grows by |1 - 3| = 2 a step: beyond the largest double after step 1024
  const Outcome outcome = descend(NoisyParabola(3.0, 0.0), 1.0, {0.0, 10.0, 5000.0});
  BOOST_TEST(static_cast<int>(outcome.status) == static_cast<int>(Status::failed));
  BOOST_TEST(outcome.trajectory.samples() == 2U);
  for (const char* part : {"step 102", "t = 102", "component state[0]", "last finite loss 1572864"}) {
    BOOST_TEST(outcome.message.find(part) != std::string::npos, outcome.message << " lacks " << part);
  }
}

BOOST_AUTO_TEST_CASE(progress_ends_at_one) {
  double last = 0.0;
  Control control;
  control.progress = [&last](double fraction) {
    BOOST_TEST(fraction > last);
    last = fraction;
  };
  static_cast<void>(descend(NoisyParabola(1.0, 0.0), 0.1, {0.0, 1.0}, {}, control));
  BOOST_TEST(last == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
