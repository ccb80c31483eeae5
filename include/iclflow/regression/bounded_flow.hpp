#pragma once

#include <string>
#include <vector>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

namespace iclflow {

/// Integrates a reduced flow as long as its closure holds. Where the closure's domain ends, located as an event of the
/// flow's closure_margin, the run ends as failed, with the samples so far, the state on the edge, and a sentence that
/// says when and why.
[[nodiscard]] Outcome integrate_within(const SpectralFlow& flow, const std::string& closure,
                                       const std::vector<double>& times, const StepperOptions& stepper,
                                       const std::vector<Event>& events, const Control& control);

}  // namespace iclflow
