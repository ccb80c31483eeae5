#pragma once

#include "iclflow/analysis/phases.hpp"
#include "iclflow/integrate/ode.hpp"

namespace iclflow {

/// Phases of a reduced flow, located as events of a second integration instead of between samples.
/// initial_loss, end_loss: of the first integration, which ended at final_time. Empty where not reached.
[[nodiscard]] Phases locate_phases(const OdeSystem& flow, const StepperOptions& stepper, double final_time,
                                   double initial_loss, double end_loss);

}  // namespace iclflow
