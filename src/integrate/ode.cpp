#include "iclflow/integrate/ode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "events.hpp"
#include "last_loss.hpp"
#include "single_step.hpp"

namespace iclflow {
namespace {

const StepperInfo& find_stepper(const std::string& name) {
  for (const StepperInfo& info : steppers()) {
    if (info.name == name) return info;
  }
  throw std::invalid_argument("unknown stepper '" + name + "'");
}

void validate(const std::vector<double>& times, const StepperOptions& options, bool adaptive) {
  if (times.empty()) throw std::invalid_argument("no sample times");
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i])) throw std::invalid_argument("sample times must be finite");
    if (i > 0 && !(times[i] > times[i - 1])) throw std::invalid_argument("sample times must increase");
  }
  const auto positive = [](double value, const char* name) {
    if (!(value > 0.0)) throw std::invalid_argument(std::string(name) + " must be positive");
  };
  const auto not_negative = [](double value, const char* name) {
    if (!(value >= 0.0) || !std::isfinite(value)) throw std::invalid_argument(std::string(name) + " must be >= 0");
  };
  not_negative(options.step, "step");
  if (!adaptive && options.step == 0.0) throw std::invalid_argument("stepper '" + options.stepper + "' needs a step");
  positive(options.relative_tolerance, "relative_tolerance");
  not_negative(options.absolute_tolerance, "absolute_tolerance");
  not_negative(options.minimum_step, "minimum_step");
  positive(options.maximum_step, "maximum_step");
  if (options.maximum_step < options.minimum_step) {
    throw std::invalid_argument("maximum_step must not be below minimum_step");
  }
}

/// One run of integrate(): the time loop and its state.
class Evolution {
 public:
  Evolution(const OdeSystem& system, const std::vector<double>& times, const StepperOptions& options,
            const std::vector<Event>& events, const Control& control)
      : system_(system),
        times_(times),
        options_(options),
        events_(events),
        control_(control),
        adaptive_(find_stepper(options.stepper).adaptive),
        stepper_(make_single_step(system, options)),
        locator_(make_single_step(system, options)) {
    validate(times, options, adaptive_);
  }

  Outcome run() {
    if (control_.resume) {
      restore(*control_.resume);
    } else {
      start();
    }
    if (first_non_finite(from_.state) >= 0 || first_non_finite(from_.rate) >= 0) {
      const Eigen::Index bad = std::max(first_non_finite(from_.state), first_non_finite(from_.rate));
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

 private:
  void start() {
    from_.time = times_.front();
    from_.state = system_.initial();
    watch_.emplace(system_, events_, from_.state, std::vector<int>{});
    if (first_non_finite(from_.state) >= 0) {
      from_.rate = from_.state;
      return;
    }
    stepper_->velocity(from_.state, from_.rate);
    if (adaptive_ && first_non_finite(from_.rate) < 0) {
      natural_ = options_.step > 0.0 ? options_.step : stepper_->first_step(from_);
      natural_ = std::min({natural_, options_.maximum_step, times_.back() - times_.front()});
    }
    system_.declare(outcome_.trajectory);
    take_sample();
    ++next_;
  }

  void restore(const Checkpoint& checkpoint) {
    outcome_.trajectory = checkpoint.trajectory;
    const std::vector<double>& done = checkpoint.trajectory.times;
    const bool ended = ended_by_event(checkpoint.trajectory, events_);
    const std::size_t regular = done.size() - (ended && !done.empty() ? 1 : 0);
    if (done.empty() || regular > times_.size() ||
        !std::equal(done.begin(), done.begin() + std::ptrdiff_t(regular), times_.begin())) {
      throw std::invalid_argument("the checkpoint belongs to other sample times");
    }
    from_.time = checkpoint.time;
    from_.state = checkpoint.state;
    stepper_->velocity(from_.state, from_.rate);
    stepper_->count_from(checkpoint.evaluations);  // that call was counted before
    natural_ = checkpoint.step;
    next_ = done.size();
    outcome_.steps = checkpoint.step_count;
    outcome_.rejections = checkpoint.rejections;
    forget_events_after(outcome_.trajectory, from_.time);
    watch_.emplace(system_, events_, from_.state, checkpoint.event_sides);
    at_sample_ = here();
  }

  [[nodiscard]] std::uint64_t evaluations() const { return stepper_->evaluations() + locator_->evaluations(); }

  [[nodiscard]] Checkpoint here() const {
    return {{}, from_.state, from_.time, natural_, outcome_.steps, evaluations(), outcome_.rejections, watch_->sides()};
  }

  void take_sample() {
    outcome_.trajectory.times.push_back(from_.time);
    system_.observe(from_.state, outcome_.trajectory);
    stepper_->restart();
    at_sample_ = here();
    if (!control_.checkpoint) return;
    Checkpoint checkpoint = at_sample_;
    checkpoint.trajectory = outcome_.trajectory;
    control_.checkpoint(checkpoint);
  }

  /// A step to try and whether it ends exactly on the next sample time.
  struct Plan {
    double size;
    double end;
    bool lands;
    bool clipped;  ///< shorter than the method would go
  };

  /// Equal steps no longer than `step` over the current sampling interval; which of them is next follows from the time.
  [[nodiscard]] Plan plan_fixed() const {
    const double begin = times_[next_ - 1];
    const double length = times_[next_] - begin;
    const double count = std::max(1.0, std::ceil(length / options_.step * (1.0 - 1e-12)));
    const double size = length / count;
    const double index = std::round((from_.time - begin) / size) + 1.0;
    const bool lands = index >= count;
    return {size, lands ? times_[next_] : begin + length * (index / count), lands, false};
  }

  /// The natural step, shortened to land; what is left is halved rather than leaving a sliver.
  [[nodiscard]] Plan plan_adaptive() const {
    const double left = times_[next_] - from_.time;
    if (left <= natural_ * (1.0 + 1e-10)) return {left, times_[next_], true, true};
    const double size = left < natural_ * (2.0 - 1e-10) ? 0.5 * left : natural_;
    return {size, from_.time + size, false, size < natural_};
  }

  /// One accepted step with its events and sample; false when the evolution ends.
  bool advance() {
    if (outcome_.steps >= options_.maximum_steps) {
      return fail(worst_, fmt::format("maximum_steps = {} reached", options_.maximum_steps), natural_);
    }
    Plan plan = adaptive_ ? plan_adaptive() : plan_fixed();
    if (!settle(plan)) return false;
    ++outcome_.steps;
    to_.time = plan.end;
    if (handle_events()) return false;
    std::swap(from_, to_);
    if (plan.lands) {
      take_sample();
      ++next_;
    }
    if (control_.progress) {
      control_.progress((from_.time - times_.front()) / (times_.back() - times_.front()));
    }
    return true;
  }

  /// Tries steps until one is accepted (then `to_` holds it and `plan` the step taken).
  bool settle(Plan& plan) {
    const double floor =
        std::max(options_.minimum_step, 4.0 * std::numeric_limits<double>::epsilon() * std::abs(from_.time));
    for (std::uint64_t rejected = 0;;) {
      if (control_.interrupted && control_.interrupted()) {
        outcome_.status = Status::interrupted;
        return false;
      }
      const Attempt tried = stepper_->attempt(from_, plan.size, to_);
      worst_ = tried.worst;
      if (tried.accepted) {
        double proposal = std::min(tried.proposal, options_.maximum_step);
        if (rejected > 0) proposal = std::min(proposal, plan.size);  // no growth right after a rejection
        natural_ = plan.clipped && rejected == 0 ? std::max(natural_, proposal) : proposal;
        return true;
      }
      ++outcome_.rejections;
      const std::string cause = describe(tried);
      if (!adaptive_) return fail(tried.worst, cause + " in a fixed step", plan.size);
      if (++rejected >= options_.maximum_rejections) {
        return fail(tried.worst, fmt::format("{}, maximum_rejections = {} reached", cause, options_.maximum_rejections),
                    plan.size);
      }
      const double shorter = std::min(tried.proposal, 0.9 * plan.size);
      if (shorter < floor) {
        const std::string limit =
            options_.minimum_step > 0.0 ? fmt::format("minimum_step = {:.3g}", floor) : "a few rounding units of t";
        return fail(tried.worst, fmt::format("{}, and the next step {:.3g} would fall below {}", cause, shorter, limit),
                    plan.size);
      }
      plan = {shorter, from_.time + shorter, false, false};
    }
  }

  static std::string describe(const Attempt& tried) {
    if (!tried.reason.empty()) return tried.reason;
    return tried.finite ? "the error estimate exceeds the tolerance" : "the step is not finite";
  }

  /// Records the crossings of the step from `from_` to `to_`; true if a terminal one ended the evolution.
  bool handle_events() {
    const auto propagate = [this](double offset) { return propagated(offset); };
    for (const EventWatch::Crossing& crossing : watch_->crossings(from_, to_, propagate)) {
      const Event& event = events_[crossing.event];
      const double time = std::min(from_.time + crossing.offset, to_.time);
      record_event(outcome_.trajectory, event, time);
      if (!event.terminal) continue;
      from_.state = crossing.offset > 0.0 ? propagated(crossing.offset) : from_.state;
      from_.time = time;
      if (time > outcome_.trajectory.times.back()) take_sample();
      return true;
    }
    return false;
  }

  /// State after `offset` from the start of the current step, by the same method under the same tolerance.
  Eigen::VectorXd propagated(double offset) {
    Point here_point = from_;
    Point there;
    locator_->restart();
    double done = 0.0;
    double size = offset;
    for (std::uint64_t rejected = 0; done < offset && rejected < options_.maximum_rejections;) {
      size = std::min(size, offset - done);
      const Attempt tried = locator_->attempt(here_point, size, there);
      if (tried.accepted) {
        done = size == offset - done ? offset : done + size;
        std::swap(here_point, there);
      } else {
        ++rejected;
        size = std::min(tried.proposal, 0.9 * size);
      }
    }
    if (done < offset) here_point.state.setConstant(std::numeric_limits<double>::quiet_NaN());
    return here_point.state;
  }

  bool fail(Eigen::Index component, const std::string& cause, double step) {
    outcome_.status = Status::failed;
    const std::string name = component >= 0 && component < from_.state.size() ? system_.component(component) : "none";
    outcome_.message = fmt::format("{} stopped at t = {:.10g} with step {:.3g}: {} (component {}, last finite loss {})",
                                   options_.stepper, from_.time, step, cause, name,
                                   last_finite_loss(system_, from_.state, outcome_.trajectory));
    return false;
  }

  const OdeSystem& system_;
  const std::vector<double>& times_;
  const StepperOptions& options_;
  const std::vector<Event>& events_;
  const Control& control_;
  const bool adaptive_;
  std::unique_ptr<SingleStep> stepper_;
  std::unique_ptr<SingleStep> locator_;  ///< for events, so that looking disturbs no step
  std::optional<EventWatch> watch_;
  Outcome outcome_;
  Checkpoint at_sample_;
  Point from_, to_;
  std::size_t next_ = 0;  ///< sample to land on
  double natural_ = 0.0;  ///< step size the method would try next, whatever the sample times
  Eigen::Index worst_ = 0;
};

}  // namespace

Outcome integrate(const OdeSystem& system, const std::vector<double>& times, const StepperOptions& options,
                  const std::vector<Event>& events, const Control& control) {
  return Evolution(system, times, options, events, control).run();
}

}  // namespace iclflow
