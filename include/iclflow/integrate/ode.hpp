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
  double step = 0.0;  ///< required by the fixed-step methods euler and rk4
  double relative_tolerance = 1e-8;
  double absolute_tolerance = 1e-12;
  double minimum_step = 0.0;  ///< 0: a few units in the last place of t
  double maximum_step = std::numeric_limits<double>::infinity();
  std::uint64_t maximum_steps = 10'000'000;
  std::uint64_t maximum_rejections = 100;  ///< consecutive
};

struct StepperInfo {
  std::string_view name;
  int order;      ///< of the propagated solution
  bool adaptive;  ///< has an error estimate
  bool implicit;  ///< needs the Jacobian
  std::string_view citation;
};

/// All steppers, in the order `list` shows them.
[[nodiscard]] const std::vector<StepperInfo>& steppers();

/// Integrates `system` and samples it at exactly `times` (increasing; the first is the start).
/// Own time loop around Odeint's single steps: lands on sample times, treats a non-finite step as rejected,
/// bounds step, growth, rejections and steps. Failures end with Status::failed and the trajectory so far.
/// Events are located by root finding on sub-steps from the bracketing step's start, to about 10 units of
/// relative tolerance, independent of step policy and sample times.
/// Throws std::invalid_argument for an unknown stepper, a missing step, bad times.
[[nodiscard]] Outcome integrate(const OdeSystem& system, const std::vector<double>& times,
                                const StepperOptions& options, const std::vector<Event>& events = {},
                                const Control& control = {});

}  // namespace iclflow
