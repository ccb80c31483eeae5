#include "auto_step.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace iclflow {
namespace {

constexpr double pair_stability = 3.25;  ///< of the pair on the negative real axis, 3.31 in truth
constexpr double pair_cost = 6.0;
constexpr double decayed = 1.0;  ///< scaled step at which the fastest variables have no transient left to follow
constexpr double enough_for_rock4 =
    1.5;                        ///< scaled step above which rock4's five velocities go farther than the pair's six
constexpr double margin = 1.2;  ///< by which a method must be better to be moved to
constexpr int steps_to_leave_pair = 15;  ///< Hairer's
constexpr int steps_to_forget = 6;       ///< Hairer's
constexpr int steps_to_return = 10;      ///< to the pair
constexpr int steps_of_trial = 8;        ///< in which a step can grow a hundred thousandfold
constexpr double trial_share = 0.25;     ///< of all velocities, for failed trials
constexpr double wait = 1.4;             ///< growth of those velocities until the next trial, at least
constexpr int most_doublings = 5;

StepperOptions with_stepper(StepperOptions options, const char* name) {
  options.stepper = name;
  return options;
}

}  // namespace

AutoStep::AutoStep(const OdeSystem& system, const StepperOptions& options)
    : SingleStep(system, options),
      pair_(system, options),
      rock_(system, options),
      rosenbrock_(system.has_jacobian() ? make_single_step(system, with_stepper(options, "rosenbrock4")) : nullptr) {
  pair_.judge_by_mean_square();
  rock_.judge_by_mean_square();
  if (rosenbrock_) rosenbrock_->judge_by_mean_square();
}

SingleStep& AutoStep::in_use() {
  if (method_ == Method::explicit_pair) return pair_;
  if (method_ == Method::stabilised) return rock_;
  return *rosenbrock_;
}

std::uint64_t AutoStep::evaluations() const {
  return SingleStep::evaluations() + pair_.evaluations() + rock_.evaluations() +
         (rosenbrock_ ? rosenbrock_->evaluations() : 0);
}

Attempt AutoStep::trial(const Point& from, double dt, Point& to, bool& rate_known) {
  rate_known = true;
  return in_use().attempt(from, dt, to);
}

Attempt AutoStep::attempt(const Point& from, double dt, Point& to) {
  size_ = from.state.size();
  Attempt verdict = in_use().attempt(from, dt, to);
  if (!verdict.accepted) return verdict;
  const double wanted = std::max(dt, std::min(verdict.accurate, longest_));
  if (method_ == Method::explicit_pair) {
    consider_leaving_the_pair(dt);
  } else if (method_ == Method::stabilised) {
    consider_leaving_rock4(dt, wanted);
  } else {
    consider_leaving_rosenbrock4(to, wanted, verdict);
  }
  return verdict;
}

void AutoStep::consider_leaving_the_pair(double dt) {
  const double scaled = pair_.scaled_step();
  if (scaled > decayed) spent_ += pair_cost;
  const int needed = steps_to_leave_pair << std::min(returns_, most_doublings);
  if (vote(scaled > enough_for_rock4, needed)) {
    move_to(Method::stabilised);
  } else {
    try_rosenbrock4(dt, pair_cost);
  }
}

void AutoStep::consider_leaving_rock4(double dt, double wanted) {
  const double cost = Rock4::cost(dt * rock_.radius());
  spent_ += cost;
  if (vote(wanted * rock_.radius() < enough_for_rock4, steps_to_return)) {
    ++returns_;
    move_to(Method::explicit_pair);
  } else {
    try_rosenbrock4(dt, cost);
  }
}

void AutoStep::try_rosenbrock4(double dt, double cost) {
  if (!rosenbrock_ || spent_ <= std::max(next_trial_, trial_cost() / trial_share)) return;
  rival_ = dt / cost;
  before_ = dt;
  home_ = method_;
  trial_ = steps_of_trial;
  move_to(Method::implicit);
}

void AutoStep::consider_leaving_rosenbrock4(const Point& at, double wanted, Attempt& verdict) {
  const double progress = wanted / implicit_cost();
  if (trial_ > 0) {
    if (progress > margin * rival_) {
      trial_ = 0;
      spent_ = 0.0;
      next_trial_ = 0.0;
    } else if (--trial_ == 0) {
      next_trial_ = std::max(spent_ + trial_cost() / trial_share, wait * spent_);
      verdict.proposal = before_;
      move_to(home_);
    }
    return;
  }
  double stable = 0.0;
  try {
    stable = pair_stability / rock_.update_radius(at);
  } catch (const std::domain_error&) {  // at the edge of the dynamics' domain: no vote
    return;
  }
  if (vote(margin * progress < std::min(wanted, stable) / pair_cost, steps_to_return)) {
    verdict.proposal = std::min(verdict.proposal, stable);
    move_to(Method::explicit_pair);
  }
}

bool AutoStep::vote(bool move, int needed) {
  against_ = move ? 0 : against_ + 1;
  if (move) ++votes_;
  if (against_ >= steps_to_forget) votes_ = 0;
  return votes_ >= needed;
}

void AutoStep::move_to(Method method) {
  method_ = method;
  votes_ = 0;
  against_ = 0;
}

double AutoStep::trial_cost() const { return steps_of_trial * implicit_cost(); }

double AutoStep::implicit_cost() const {
  // 20 + n + n^2 / 100, fitted to the large-context flow                  theory: eq:implicit-cost
  const auto n = static_cast<double>(size_);
  return 20.0 + n + n * n / 100.0;
}

void AutoStep::remember(std::vector<double>& memory) const {
  for (const int number : {static_cast<int>(method_), static_cast<int>(home_), votes_, against_, returns_, trial_}) {
    memory.push_back(number);
  }
  memory.insert(memory.end(), {spent_, next_trial_, rival_, before_});
  rock_.remember(memory);
}

void AutoStep::recall(const std::vector<double>& memory) {
  constexpr std::size_t own = 10;
  if (memory.size() < own) return;
  const auto integer = [&](std::size_t i) { return static_cast<int>(memory[i]); };
  method_ = static_cast<Method>(integer(0));
  home_ = static_cast<Method>(integer(1));
  votes_ = integer(2);
  against_ = integer(3);
  returns_ = integer(4);
  trial_ = integer(5);
  spent_ = memory[6];
  next_trial_ = memory[7];
  rival_ = memory[8];
  before_ = memory[9];
  rock_.recall({memory.begin() + own, memory.end()});
}

}  // namespace iclflow
