#pragma once

#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

#include "iclflow/integrate/ode.hpp"

namespace iclflow {

/// A point of a solution together with its velocity (the first stage of the next step).
struct Point {
  double time = 0.0;
  Eigen::VectorXd state;
  Eigen::VectorXd rate;
};

/// Verdict on one tried step.
struct Attempt {
  bool accepted = false;  ///< candidate and its velocity finite, local error within tolerance
  bool finite = true;     ///< false: some entry of the candidate (or of a stage) is not finite
  double proposal = 0.0;  ///< step size to try next; meaningless for fixed-step methods
  /// Step size that the tolerance alone would allow; the proposal is kept near the last one and within stability.
  double accurate = 0.0;
  Eigen::Index worst = 0;  ///< component with the largest scaled error, or the first non-finite one
  std::string reason;      ///< what the dynamics said when it refused a stage, else empty
};

/// One method behind one interface. What is kept between steps is either in remember(), so that the same point, memory
/// and step size always give the same bits and a resumed run retraces an uninterrupted one, or carries_order().
class SingleStep {
 public:
  SingleStep(const OdeSystem& system, const StepperOptions& options) : system_(system), options_(options) {}
  virtual ~SingleStep() = default;
  SingleStep(const SingleStep&) = delete;
  SingleStep& operator=(const SingleStep&) = delete;

  /// Tries one step of size `dt` from `from`; on acceptance `to` holds the new state and velocity (its time is left to
  /// the caller, who knows what it was to land on). A std::domain_error of the dynamics counts as a non-finite step.
  [[nodiscard]] virtual Attempt attempt(const Point& from, double dt, Point& to);
  /// Forgets all that was learnt from earlier steps.
  virtual void restart() {}
  /// True if the next step depends on earlier ones: then a run can only be resumed from where it restarted.
  [[nodiscard]] virtual bool carries_order() const { return false; }
  /// Appends all that later steps depend on besides point and step size; recall() takes it up in another object.
  virtual void remember(std::vector<double>& /*memory*/) const {}
  virtual void recall(const std::vector<double>& /*memory*/) {}
  /// Longest step that the sample times will let pass for some time.
  virtual void expect_steps_below(double /*length*/) {}
  /// Judges local errors by the root of their mean square over the components instead of the largest.
  void judge_by_mean_square() { mean_square_ = true; }
  /// A first step size from the scales of state, velocity and its change along an Euler step.
  /// Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.4.
  [[nodiscard]] double first_step(const Point& start);
  /// Velocity with its calls counted.
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate);
  [[nodiscard]] virtual std::uint64_t evaluations() const { return evaluations_; }
  void count_from(std::uint64_t evaluations) { evaluations_ = evaluations; }

 protected:
  /// Fills to.state, and to.rate where the method yields it for nothing (then true in `rate_known`).
  virtual Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) = 0;
  /// Order of the error estimate plus one: the local error falls as dt to this power.
  [[nodiscard]] virtual int error_power() const = 0;
  /// Elementary controller on the norm of error / scale: accept at <= 1, safety 0.9, factor in [0.2, 5].
  /// The scale is that of the start alone: a wild candidate of a logarithmic coordinate (a product that collapsed to
  /// zero) would allow itself any error.
  [[nodiscard]] Attempt judge(const Point& from, double dt, const Eigen::VectorXd& error);
  /// error_scale of `y`, kept away from zero and infinity.
  void scale(const Eigen::VectorXd& y, Eigen::VectorXd& result) const;
  [[nodiscard]] const OdeSystem& system() const { return system_; }

 private:
  const OdeSystem& system_;
  const StepperOptions options_;
  std::uint64_t evaluations_ = 0;
  bool mean_square_ = false;
  Eigen::Index culprit_ = -1;  ///< first non-finite entry of a velocity in the current attempt
  Eigen::VectorXd scale_;
};

/// Index of the first entry that is not finite, or -1.
[[nodiscard]] Eigen::Index first_non_finite(const Eigen::VectorXd& y);

/// The method named in `options`. Throws std::invalid_argument for an unknown one.
[[nodiscard]] std::unique_ptr<SingleStep> make_single_step(const OdeSystem& system, const StepperOptions& options);

}  // namespace iclflow
