#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iclflow/integrate/control.hpp"

namespace iclflow {

/// Which Odeint stepper and its limits. Tolerances are those of OdeSystem::error_scale; times in units of the flow's
/// clock.
struct StepperOptions {
  std::string stepper = "dopri5";
  double step = 0.0;  ///< required by the fixed-step methods euler and rk4; else the first step tried, 0: estimated
  double relative_tolerance = 1e-8;
  double absolute_tolerance = 1e-12;
  double minimum_step = 0.0;  ///< 0: a few units in the last place of t
  double maximum_step = std::numeric_limits<double>::infinity();
  std::uint64_t maximum_steps = 10'000'000;
  std::uint64_t maximum_rejections = 100;  ///< consecutive
};

struct StepperInfo {
  std::string_view name;
  int order;      ///< of the propagated solution; bulirsch_stoer, cvode: its least, it rises as the tolerance falls
  bool adaptive;  ///< has an error estimate
  bool implicit;  ///< needs the Jacobian; "auto" uses it where there is one
  std::string_view citation;
};

/// All steppers, in the order `list` shows them.
[[nodiscard]] const std::vector<StepperInfo>& steppers();
/// Whether SUNDIALS was found when the library was configured, and with it the stepper "cvode".
[[nodiscard]] bool has_cvode();

/// Integrates `system` and samples it at exactly `times` (increasing; the first is the start).
/// Own time loop around Odeint's single steps: lands on sample times, bounds step, growth (5-fold), rejections and
/// steps. A step is accepted when the largest component of its error estimate over OdeSystem::error_scale (at the
/// step's start) is at most 1; one that is not finite, or in which the dynamics throws std::domain_error, is rejected
/// and halved; "auto" and "cvode" judge by the root of the mean square over the components. Fixed-step methods cover
/// each sampling interval by equal steps no longer than `step`. Failures end with Status::failed and the trajectory so
/// far. Events are strict changes of side, looked for at both ends of each accepted step and at points inside it; they
/// are located by root finding on states integrated from the start of the step, so that their time is that of the
/// solution to its own accuracy, whatever the step policy and the sample times. Throws std::invalid_argument for an
/// unknown stepper or quantity, a missing step or Jacobian, bad times or limits, a checkpoint of another run.
[[nodiscard]] Outcome integrate(const OdeSystem& system, const std::vector<double>& times,
                                const StepperOptions& options, const std::vector<Event>& events = {},
                                const Control& control = {});

}  // namespace iclflow
