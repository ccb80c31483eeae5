#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events.hpp"
#include "iclflow/integrate/ode.hpp"
#include "single_step.hpp"

namespace iclflow {

/// One run of integrate(): the time loop and its state.
class Evolution {
 public:
  Evolution(const OdeSystem& system, const std::vector<double>& times, const StepperOptions& options, bool adaptive,
            const std::vector<Event>& events, const Control& control);
  [[nodiscard]] Outcome run();

 private:
  /// A step to try and whether it ends exactly on the next sample time.
  struct Plan {
    double size;
    double end;
    bool lands;
    bool clipped;  ///< shorter than the method would go
  };

  void start();
  void restore(const Checkpoint& checkpoint);
  /// Velocity at the current state; not a number where the dynamics refuses it.
  void enter_state();
  [[nodiscard]] Checkpoint here() const;
  [[nodiscard]] std::uint64_t evaluations() const { return stepper_->evaluations() + locator_->evaluations(); }
  void take_sample();
  /// One accepted step with its events and sample; false when the evolution ends.
  bool advance();
  /// Equal steps no longer than `step` over the current sampling interval; which of them is next follows from the time.
  [[nodiscard]] Plan plan_fixed() const;
  /// The natural step, shortened to land; what is left is halved rather than leaving a sliver.
  [[nodiscard]] Plan plan_adaptive() const;
  /// Tries steps until one is accepted (then `to_` holds it and `plan` the step taken).
  bool settle(Plan& plan);
  /// Shortens the plan after a rejection; false when a limit is reached.
  bool shorten(Plan& plan, const Attempt& tried, std::uint64_t rejected);
  [[nodiscard]] double smallest_step() const;
  /// Records the crossings of the step from `from_` to `to_`; true if a terminal one ended the evolution.
  bool handle_events();
  /// State `offset` after the start of the current step, by the same method under the same tolerance.
  [[nodiscard]] Eigen::VectorXd propagated(double offset);
  bool fail(Eigen::Index component, const std::string& cause, double step);

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
  std::vector<double> memory_;  ///< of the method at the start of the current step
  std::size_t next_ = 0;        ///< sample to land on
  double natural_ = 0.0;        ///< step size the method would try next, whatever the sample times
  Eigen::Index worst_ = 0;
};

}  // namespace iclflow
