#include "evolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "last_loss.hpp"

namespace iclflow {

Evolution::Evolution(const OdeSystem& system, const std::vector<double>& times, const StepperOptions& options,
                     bool adaptive, const std::vector<Event>& events, const Control& control)
    : system_(system),
      times_(times),
      options_(options),
      events_(events),
      control_(control),
      adaptive_(adaptive),
      stepper_(make_single_step(system, options)),
      locator_(make_single_step(system, options)) {}

Outcome Evolution::run() {
  if (control_.resume) {
    restore(*control_.resume);
  } else {
    start();
  }
  const Eigen::Index bad = std::max(first_non_finite(from_.state), first_non_finite(from_.rate));
  if (bad >= 0) {
    fail(bad, "the start or its velocity is not finite", 0.0);
  } else if (!ended_by_event(outcome_.trajectory, events_)) {
    while (next_ < times_.size() && advance()) {
    }
  }
  outcome_.evaluations = evaluations();
  const bool from_sample = outcome_.status == Status::interrupted && stepper_->carries_order();
  outcome_.last = from_sample ? at_sample_ : here();
  return std::move(outcome_);
}

void Evolution::start() {
  from_.time = times_.front();
  from_.state = system_.initial();
  system_.declare(outcome_.trajectory);
  watch_.emplace(system_, events_, from_.state, std::vector<int>{});
  enter_state();
  if (adaptive_ && first_non_finite(from_.rate) < 0) {
    natural_ = options_.step > 0.0 ? options_.step : stepper_->first_step(from_);
    natural_ = std::max(std::min(natural_, options_.maximum_step), smallest_step());
  }
  if (first_non_finite(from_.state) >= 0) return;
  take_sample();
  ++next_;
}

void Evolution::restore(const Checkpoint& checkpoint) {
  outcome_.trajectory = checkpoint.trajectory;
  const std::vector<double>& done = checkpoint.trajectory.times;
  // a terminal event left a sample of its own
  const std::size_t regular = done.size() - (ended_by_event(checkpoint.trajectory, events_) && !done.empty() ? 1 : 0);
  if (done.empty() || regular > times_.size() ||
      !std::equal(done.begin(), done.begin() + static_cast<std::ptrdiff_t>(regular), times_.begin())) {
    throw std::invalid_argument("the checkpoint belongs to other sample times");
  }
  from_.time = checkpoint.time;
  from_.state = checkpoint.state;
  enter_state();
  stepper_->count_from(checkpoint.evaluations);  // that call was counted before
  stepper_->recall(checkpoint.memory);
  stepper_->remember(memory_);
  natural_ = checkpoint.step;
  next_ = done.size();
  outcome_.steps = checkpoint.step_count;
  outcome_.rejections = checkpoint.rejections;
  forget_events_after(outcome_.trajectory, from_.time);
  watch_.emplace(system_, events_, from_.state, checkpoint.event_sides);
  at_sample_ = here();
}

void Evolution::enter_state() {
  try {
    stepper_->velocity(from_.state, from_.rate);
  } catch (const std::domain_error&) {
    from_.rate.setConstant(from_.state.size(), std::numeric_limits<double>::quiet_NaN());
  }
}

Checkpoint Evolution::here() const {
  return {
      {},     from_.state, from_.time, natural_, outcome_.steps, evaluations(), outcome_.rejections, watch_->sides(),
      memory_};
}

void Evolution::take_sample() {
  outcome_.trajectory.times.push_back(from_.time);
  system_.observe(from_.state, outcome_.trajectory);
  stepper_->restart();
  memory_.clear();
  stepper_->remember(memory_);
  at_sample_ = here();
  if (!control_.checkpoint) return;
  Checkpoint checkpoint = at_sample_;
  checkpoint.trajectory = outcome_.trajectory;
  control_.checkpoint(checkpoint);
}

bool Evolution::advance() {
  if (outcome_.steps >= options_.maximum_steps) {
    return fail(worst_, fmt::format("maximum_steps = {} reached", options_.maximum_steps), natural_);
  }
  Plan plan = adaptive_ ? plan_adaptive() : plan_fixed();
  memory_.clear();
  stepper_->remember(memory_);
  stepper_->expect_steps_below(times_[next_] - times_[next_ - 1]);
  if (!settle(plan)) return false;
  ++outcome_.steps;
  to_.time = plan.end;
  if (handle_events()) return false;
  std::swap(from_, to_);
  if (plan.lands) {
    take_sample();
    ++next_;
  }
  if (control_.progress) control_.progress((from_.time - times_.front()) / (times_.back() - times_.front()));
  return true;
}

Evolution::Plan Evolution::plan_fixed() const {
  const double begin = times_[next_ - 1];
  const double length = times_[next_] - begin;
  const double count = std::max(1.0, std::ceil(length / options_.step * (1.0 - 1e-12)));
  const double size = length / count;
  const double index = std::round((from_.time - begin) / size) + 1.0;
  const bool lands = index >= count;
  return {size, lands ? times_[next_] : begin + length * (index / count), lands, false};
}

Evolution::Plan Evolution::plan_adaptive() const {
  const double left = times_[next_] - from_.time;
  if (left <= natural_ * (1.0 + 1e-10)) return {left, times_[next_], true, true};
  const double size = left < natural_ * (2.0 - 1e-10) ? 0.5 * left : natural_;
  return {size, from_.time + size, false, size < natural_};
}

double Evolution::smallest_step() const {
  return std::max(options_.minimum_step, 4.0 * std::numeric_limits<double>::epsilon() * std::abs(from_.time));
}

bool Evolution::settle(Plan& plan) {
  for (std::uint64_t rejected = 0;;) {
    if (control_.interrupted && control_.interrupted()) {
      outcome_.status = Status::interrupted;
      return false;
    }
    const Attempt tried = stepper_->attempt(from_, plan.size, to_);
    worst_ = tried.worst;
    if (!tried.accepted) {
      ++outcome_.rejections;
      if (!shorten(plan, tried, ++rejected)) return false;
      continue;
    }
    double proposal = std::min(tried.proposal, options_.maximum_step);
    if (rejected > 0) proposal = std::min(proposal, plan.size);  // no growth right after a rejection
    if (plan.clipped && rejected == 0) proposal = std::max(proposal, natural_);
    natural_ = std::max(proposal, smallest_step());
    return true;
  }
}

bool Evolution::shorten(Plan& plan, const Attempt& tried, std::uint64_t rejected) {
  const std::string cause = !tried.reason.empty() ? tried.reason
                            : tried.finite        ? "the error estimate exceeds the tolerance"
                                                  : "the step is not finite";
  if (!adaptive_) return fail(tried.worst, cause + " and its size is fixed", plan.size);
  if (rejected >= options_.maximum_rejections) {
    return fail(tried.worst, fmt::format("{}, maximum_rejections = {} reached", cause, rejected), plan.size);
  }
  const double shorter = std::min(tried.proposal, 0.9 * plan.size);
  if (shorter < smallest_step()) {
    const std::string limit = options_.minimum_step > 0.0 ? fmt::format("minimum_step = {:.3g}", options_.minimum_step)
                                                          : "minimum_step, a few rounding units of t";
    return fail(tried.worst, fmt::format("{}, and a shorter one would fall below {}", cause, limit), plan.size);
  }
  plan = {shorter, from_.time + shorter, false, false};
  return true;
}

bool Evolution::handle_events() {
  const auto propagate = [this](double offset) { return propagated(offset); };
  for (const EventWatch::Crossing& crossing : watch_->crossings(from_, to_, propagate)) {
    const Event& event = events_[crossing.event];
    const double time = std::min(from_.time + crossing.offset, to_.time);
    record_event(outcome_.trajectory, event, time);
    if (!event.terminal) continue;
    if (crossing.offset > 0.0) from_.state = propagated(crossing.offset);
    from_.time = time;
    if (time > outcome_.trajectory.times.back()) take_sample();
    return true;
  }
  return false;
}

Eigen::VectorXd Evolution::propagated(double offset) {
  Point at = from_;
  Point next;
  locator_->restart();
  locator_->recall(memory_);
  double done = 0.0;
  double size = offset;
  for (std::uint64_t rejected = 0; done < offset && rejected < options_.maximum_rejections;) {
    const double left = offset - done;
    size = std::min(size, left);
    const Attempt tried = locator_->attempt(at, size, next);
    if (tried.accepted) {
      done = size == left ? offset : done + size;
      std::swap(at, next);
    } else {
      ++rejected;
      size = std::min(tried.proposal, 0.9 * size);
    }
  }
  if (done < offset) at.state.setConstant(std::numeric_limits<double>::quiet_NaN());
  return at.state;
}

bool Evolution::fail(Eigen::Index component, const std::string& cause, double step) {
  outcome_.status = Status::failed;
  outcome_.message = fmt::format("{} stopped at t = {:.10g} with step {:.3g}: {} (component {}, last finite loss {})",
                                 options_.stepper, from_.time, step, cause, system_.component(component),
                                 last_finite_loss(system_, from_.state, outcome_.trajectory));
  return false;
}

}  // namespace iclflow
