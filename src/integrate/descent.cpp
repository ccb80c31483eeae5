#include "iclflow/integrate/descent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "events.hpp"
#include "last_loss.hpp"
#include "single_step.hpp"

namespace iclflow {
namespace {

/// theta <- theta - learning_rate * gradient.
class PlainRule final : public DescentRule {
 public:
  explicit PlainRule(double learning_rate) : learning_rate_(learning_rate) {}
  [[nodiscard]] double clock() const override { return learning_rate_; }
  [[nodiscard]] double rate(std::uint64_t) const override { return learning_rate_; }
  void advance(std::uint64_t, const Eigen::VectorXd& theta, const Eigen::VectorXd& gradient,
               Eigen::VectorXd& next) override {
    next = theta - learning_rate_ * gradient;
  }

 private:
  double learning_rate_;
};

/// One run of descend().
class Descent {
 public:
  Descent(const DescentSystem& system, DescentRule& rule, const std::vector<double>& times,
          const std::vector<Event>& events, const Control& control)
      : system_(system),
        rule_(rule),
        events_(events),
        control_(control),
        samples_(sample_steps(times, rule.clock())),
        values_(events.size()),
        value_times_(events.size()),
        sides_(events.size(), 0) {}

  Outcome run() {
    if (control_.resume) {
      restore(*control_.resume);
    } else {
      theta_ = system_.initial();
      system_.declare(outcome_.trajectory);
      for (std::size_t e = 0; e < events_.size(); ++e) {
        keep(e, system_.quantity(events_[e].quantity, theta_));
      }
      if (samples_.front() == 0) take_sample();
    }
    if (!ended_by_event(outcome_.trajectory, events_)) {
      while (outcome_.trajectory.samples() < samples_.size() && advance()) {
      }
    }
    outcome_.steps = step_;
    outcome_.evaluations = evaluations_;
    outcome_.last = here();
    return std::move(outcome_);
  }

 private:
  [[nodiscard]] double time() const { return static_cast<double>(step_) * rule_.clock(); }
  [[nodiscard]] Checkpoint here() const {
    return {{}, theta_, time(), rule_.clock(), step_, evaluations_, 0, sides_, rule_.memory()};
  }

  void restore(const Checkpoint& checkpoint) {
    outcome_.trajectory = checkpoint.trajectory;
    theta_ = checkpoint.state;
    step_ = checkpoint.step_count;
    evaluations_ = checkpoint.evaluations;
    const std::vector<double>& done = outcome_.trajectory.times;
    if (done.size() > samples_.size() || checkpoint.step != rule_.clock()) {
      throw std::invalid_argument("the checkpoint belongs to another learning rate or other sample times");
    }
    rule_.remember(checkpoint.memory);
    const bool sided = checkpoint.event_sides.size() == events_.size();
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (sided) sides_[e] = checkpoint.event_sides[e];
      if (is_loss(e) && !done.empty()) {
        keep(e, sampled_loss());
        value_times_[e] = done.back();
      } else {
        keep(e, system_.quantity(events_[e].quantity, is_loss(e) ? system_.initial() : theta_));
        if (is_loss(e)) value_times_[e] = 0.0;
      }
    }
  }

  /// One step, its events and sample; false when the evolution ends.
  bool advance() {
    if (control_.interrupted && control_.interrupted()) {
      outcome_.status = Status::interrupted;
      return false;
    }
    gradient_.resize(theta_.size());
    system_.gradient(step_, theta_, gradient_);
    ++evaluations_;
    rule_.advance(step_, theta_, gradient_, next_);
    if (const Eigen::Index bad = first_non_finite(next_); bad >= 0) return fail(bad);
    std::swap(theta_, next_);
    ++step_;
    const bool due = step_ == samples_[outcome_.trajectory.samples()];
    bool ends = watch(false);
    if (due || ends) {
      sample_only();
      ends = watch(true) || ends;
      publish();
    }
    if (control_.progress) control_.progress(static_cast<double>(step_) / static_cast<double>(samples_.back()));
    return !ends;
  }

  [[nodiscard]] bool is_loss(std::size_t event) const { return events_[event].quantity == "loss"; }

  /// The loss as it was just sampled: evaluating it again on the evaluation contexts would cost as much as the sample.
  [[nodiscard]] double sampled_loss() const {
    const Trajectory& run = outcome_.trajectory;
    if (run.has("loss") && run["loss"].width() == 1) return run["loss"].last().front();
    return system_.quantity("loss", theta_);
  }

  void keep(std::size_t event, double value) {
    values_[event] = value;
    value_times_[event] = time();
    if (const int side = side_of_level(value, events_[event].level); side != 0) sides_[event] = side;
  }

  /// Crossings since the last look, of the loss or of everything else; true if a terminal one is among them.
  bool watch(bool loss) {
    bool ends = false;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (is_loss(e) != loss) continue;
      const int before = sides_[e];
      const double old_value = values_[e];
      const double old_time = value_times_[e];
      keep(e, loss ? sampled_loss() : system_.quantity(events_[e].quantity, theta_));
      const bool crossed = before * sides_[e] == -1 && (events_[e].direction == Direction::rising) == (before < 0);
      if (!crossed) continue;
      const double share = std::clamp((events_[e].level - old_value) / (values_[e] - old_value), 0.0, 1.0);
      record_event(outcome_.trajectory, events_[e], old_time + share * (time() - old_time));
      ends = ends || events_[e].terminal;
    }
    return ends;
  }

  void sample_only() {
    outcome_.trajectory.times.push_back(time());
    system_.observe(theta_, outcome_.trajectory);
  }

  void publish() const {
    if (!control_.checkpoint) return;
    Checkpoint checkpoint = here();
    checkpoint.trajectory = outcome_.trajectory;
    control_.checkpoint(checkpoint);
  }

  void take_sample() {
    sample_only();
    publish();
  }

  bool fail(Eigen::Index bad) {
    outcome_.status = Status::failed;
    outcome_.message = fmt::format(
        "descent stopped at step {} (t = {:.10g}, learning rate {:.3g}): the next step is not finite "
        "(component {}, last finite loss {}); a smaller learning_rate may help",
        step_, time(), rule_.rate(step_), system_.component(bad),
        last_finite_loss(system_, theta_, outcome_.trajectory));
    return false;
  }

  const DescentSystem& system_;
  DescentRule& rule_;
  const std::vector<Event>& events_;
  const Control& control_;
  const std::vector<std::uint64_t> samples_;
  Outcome outcome_;
  Eigen::VectorXd theta_, next_, gradient_;
  std::uint64_t step_ = 0;
  std::uint64_t evaluations_ = 0;
  std::vector<double> values_;       ///< of each event's quantity when last looked at
  std::vector<double> value_times_;  ///< when that was
  std::vector<int> sides_;
};

}  // namespace

std::vector<std::uint64_t> sample_steps(const std::vector<double>& times, double learning_rate) {
  constexpr double largest_step = 4.0e9;  // fresh contexts are keyed by a 32 bit step number
  if (!(learning_rate > 0.0) || !std::isfinite(learning_rate)) {
    throw std::invalid_argument("the learning rate must be positive");
  }
  if (times.empty()) throw std::invalid_argument("no sample times");
  std::vector<std::uint64_t> steps;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double step = std::round(times[i] / learning_rate);
    if (!(step >= 0.0)) throw std::invalid_argument(fmt::format("no step has the time {}", times[i]));
    if (step > largest_step) throw std::invalid_argument("more than 4e9 steps of this learning rate");
    steps.push_back(static_cast<std::uint64_t>(step));
    if (i > 0 && !(times[i] > times[i - 1])) throw std::invalid_argument("sample times must increase");
    if (i > 0 && steps[i] == steps[i - 1]) {
      throw std::invalid_argument(fmt::format("the sample times {} and {} fall on one step of length {}", times[i - 1],
                                              times[i], learning_rate));
    }
  }
  return steps;
}

Outcome descend(const DescentSystem& system, double learning_rate, const std::vector<double>& times,
                const std::vector<Event>& events, const Control& control) {
  PlainRule rule(learning_rate);
  return Descent(system, rule, times, events, control).run();
}

Outcome descend(const DescentSystem& system, DescentRule& rule, const std::vector<double>& times,
                const std::vector<Event>& events, const Control& control) {
  return Descent(system, rule, times, events, control).run();
}

}  // namespace iclflow
