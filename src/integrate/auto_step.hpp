#pragma once

#include <memory>
#include <vector>

#include "dormand_prince.hpp"
#include "rock4.hpp"
#include "single_step.hpp"

namespace iclflow {

/// Stepper "auto": Dormand and Prince's pair while accuracy bounds the step, rock4 where stability does, and
/// rosenbrock4, if there is a Jacobian, where it goes farther for its cost.
///
/// It leaves the pair after many steps in a row that say so, the more of them the oftener it has come back. What
/// rosenbrock4 could do cannot be seen from an explicit method: it is tried out, and so rarely that the trials cost at
/// most a fraction of all. All is counted in velocities, never in time: the steps are the same on every machine.
/// Local errors are judged by the root of their mean square, as in SciPy and CVODE. Theory: theory/10-steppers.md.
class AutoStep final : public SingleStep {
 public:
  AutoStep(const OdeSystem& system, const StepperOptions& options);

  [[nodiscard]] Attempt attempt(const Point& from, double dt, Point& to) override;
  void remember(std::vector<double>& memory) const override;
  void recall(const std::vector<double>& memory) override;
  void expect_steps_below(double length) override { longest_ = length; }
  [[nodiscard]] std::uint64_t evaluations() const override;

 private:
  enum class Method { explicit_pair, stabilised, implicit };

  Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) override;
  [[nodiscard]] int error_power() const override { return 5; }
  [[nodiscard]] SingleStep& in_use();
  void consider_leaving_the_pair(double dt);
  void consider_leaving_rock4(double dt, double wanted);
  /// Begins a trial if enough has been spent; `cost` is that of the step of dt in velocities.
  void try_rosenbrock4(double dt, double cost);
  /// May replace the proposal by the step of the method it goes back to.
  void consider_leaving_rosenbrock4(const Point& at, double wanted, Attempt& verdict);
  /// Counts a vote for moving, or none; true when there are enough in a row.
  bool vote(bool move, int needed);
  void move_to(Method method);
  /// What a step of rosenbrock4 costs in velocities.
  [[nodiscard]] double implicit_cost() const;
  [[nodiscard]] double trial_cost() const;

  Eigen::Index size_ = 0;
  double longest_ = 0.0;
  Method method_ = Method::explicit_pair;
  Method home_ = Method::explicit_pair;  ///< where a failed trial goes back to
  int votes_ = 0;                        ///< in a row for another method
  int against_ = 0;                      ///< steps in a row that did not confirm them
  int returns_ = 0;                      ///< from rock4 to the pair
  int trial_ = 0;                        ///< steps left of a trial, 0 outside
  double spent_ = 0.0;                   ///< velocities of explicit steps longer than the fastest decay
  double next_trial_ = 0.0;              ///< what they must exceed for the next trial
  double rival_ = 0.0;                   ///< progress per velocity before the trial began
  double before_ = 0.0;                  ///< and its step
  DormandPrince pair_;
  Rock4 rock_;
  std::unique_ptr<SingleStep> rosenbrock_;  ///< empty without a Jacobian
};

}  // namespace iclflow
