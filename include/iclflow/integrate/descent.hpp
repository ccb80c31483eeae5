#pragma once

#include <vector>

#include "iclflow/integrate/control.hpp"

namespace iclflow {

/// Step numbers nearest to the sample times. Throws std::invalid_argument when two times fall on one step,
/// and beyond 4e9 steps.
[[nodiscard]] std::vector<std::uint64_t> sample_steps(const std::vector<double>& times, double learning_rate);

/// How a gradient becomes a step. May remember earlier ones; what it remembers goes into checkpoints.
class DescentRule {
 public:
  virtual ~DescentRule() = default;
  /// Time that one step takes on the dynamics' clock.
  [[nodiscard]] virtual double clock() const = 0;
  /// Learning rate of a step, for messages.
  [[nodiscard]] virtual double rate(std::uint64_t step) const = 0;
  virtual void advance(std::uint64_t step, const Eigen::VectorXd& theta, const Eigen::VectorXd& gradient,
                       Eigen::VectorXd& next) = 0;
  [[nodiscard]] virtual std::vector<double> memory() const { return {}; }
  /// Throws std::invalid_argument for the memory of another rule.
  virtual void remember(const std::vector<double>& memory) { static_cast<void>(memory); }
};

/// Stochastic gradient descent, step k at time k * learning_rate, sampled at the steps nearest to `times`
/// (recorded times are the steps' own). Events are interpolated linearly between steps for mu and omega and between
/// samples for the loss. A non-finite weight ends with Status::failed.
[[nodiscard]] Outcome descend(const DescentSystem& system, double learning_rate, const std::vector<double>& times,
                              const std::vector<Event>& events = {}, const Control& control = {});
/// The same with another rule; step k at time k * rule.clock().
[[nodiscard]] Outcome descend(const DescentSystem& system, DescentRule& rule, const std::vector<double>& times,
                              const std::vector<Event>& events = {}, const Control& control = {});

}  // namespace iclflow
