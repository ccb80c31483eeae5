#include <boost/test/unit_test.hpp>
#include <stdexcept>

#include "iclflow/integrate/ode.hpp"
#include "unit/integrate_systems.hpp"

namespace {

using iclflow::Checkpoint;
using iclflow::Control;
using iclflow::Direction;
using iclflow::integrate;
using iclflow::Outcome;
using iclflow::StepperOptions;

const std::vector<double> kTimes = {0.0, 0.3, 1.0, 1.01, 4.0, 12.0};
const std::vector<iclflow::Event> kEvents = {{"y[0]", 0.5, Direction::rising, false},
                                             {"y[1]", 0.25, Direction::falling, false},
                                             {"y[1]", 0.25, Direction::rising, false}};

StepperOptions with(std::string_view stepper) {
  StepperOptions options;
  options.stepper = std::string(stepper);
  options.step = 0.07;
  options.relative_tolerance = 1e-9;
  return options;
}

void check_same(const Outcome& resumed, const Outcome& whole) {
  BOOST_TEST(iclflow_tests::all_digits(resumed.trajectory) == iclflow_tests::all_digits(whole.trajectory));
  BOOST_TEST(resumed.steps == whole.steps);
  BOOST_TEST(resumed.rejections == whole.rejections);
  BOOST_TEST(resumed.evaluations == whole.evaluations);
  BOOST_TEST((resumed.last.state == whole.last.state));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_resume)

BOOST_AUTO_TEST_CASE(from_every_checkpoint_every_stepper_retraces_the_same_bits) {
  const auto field = iclflow_tests::logistic_and_rotation();
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    BOOST_TEST_CONTEXT(info.name) {
      std::vector<Checkpoint> checkpoints;
      Control watching;
      watching.checkpoint = [&](const Checkpoint& checkpoint) { checkpoints.push_back(checkpoint); };
      const Outcome whole = integrate(field, kTimes, with(info.name), kEvents, watching);
      BOOST_TEST(checkpoints.size() == kTimes.size());
      BOOST_TEST(whole.trajectory.events.size() == 5U);
      for (const Checkpoint& checkpoint : checkpoints) {
        Control resuming;
        resuming.resume = checkpoint;
        check_same(integrate(field, kTimes, with(info.name), kEvents, resuming), whole);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(after_an_interruption_anywhere_every_stepper_retraces_the_same_bits) {
  const auto field = iclflow_tests::logistic_and_rotation();
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    BOOST_TEST_CONTEXT(info.name) {
      const Outcome whole = integrate(field, kTimes, with(info.name), kEvents);
      for (std::uint64_t stop = 0; stop < whole.steps + whole.rejections; stop += 1 + whole.steps / 20) {
        std::uint64_t polls = 0;
        Control interrupting;
        interrupting.interrupted = [&] { return polls++ == stop; };
        Outcome part = integrate(field, kTimes, with(info.name), kEvents, interrupting);
        Control resuming;
        resuming.resume = part.last;
        resuming.resume->trajectory = part.trajectory;
        const Outcome resumed = integrate(field, kTimes, with(info.name), kEvents, resuming);
        // an interruption between a rejection and its retry leaves that rejection out of the state: it is done again
        BOOST_TEST(iclflow_tests::all_digits(resumed.trajectory) == iclflow_tests::all_digits(whole.trajectory));
        BOOST_TEST(resumed.steps == whole.steps);
        BOOST_TEST((resumed.last.state == whole.last.state));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_run_that_has_ended_is_left_alone) {
  const auto field = iclflow_tests::logistic_and_rotation();
  std::vector<iclflow::Event> events = kEvents;
  events[0].terminal = true;
  for (const bool terminal : {false, true}) {
    const auto& watched = terminal ? events : kEvents;
    Checkpoint last;
    Control watching;
    watching.checkpoint = [&](const Checkpoint& checkpoint) { last = checkpoint; };
    const Outcome whole = integrate(field, kTimes, with("dopri5"), watched, watching);
    Control resuming;
    resuming.resume = last;
    check_same(integrate(field, kTimes, with("dopri5"), watched, resuming), whole);
  }
}

BOOST_AUTO_TEST_CASE(the_final_time_may_be_put_off) {
  const auto field = iclflow_tests::logistic_and_rotation();
  Checkpoint last;
  Control watching;
  watching.checkpoint = [&](const Checkpoint& checkpoint) { last = checkpoint; };
  static_cast<void>(integrate(field, {0.0, 1.0, 2.0}, with("dopri5"), kEvents, watching));
  Control resuming;
  resuming.resume = last;
  check_same(integrate(field, {0.0, 1.0, 2.0, 5.0}, with("dopri5"), kEvents, resuming),
             integrate(field, {0.0, 1.0, 2.0, 5.0}, with("dopri5"), kEvents));
  BOOST_CHECK_THROW(static_cast<void>(integrate(field, {0.0, 1.5, 5.0}, with("dopri5"), kEvents, resuming)),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
