#include "iclflow/regression/bounded_flow.hpp"

#include <fmt/format.h>

namespace iclflow {

Outcome integrate_within(const SpectralFlow& flow, const std::string& closure, const std::vector<double>& times,
                         const StepperOptions& stepper, const std::vector<Event>& events, const Control& control) {
  if (!flow.bounded()) return integrate(flow, times, stepper, events, control);
  std::vector<Event> watched = events;
  watched.push_back({SpectralFlow::closure_margin, 0.0, Direction::falling, true});
  Outcome outcome = integrate(flow, times, stepper, watched, control);
  const std::vector<EventRecord>& found = outcome.trajectory.events;
  if (outcome.status == Status::completed && !found.empty() && found.back().quantity == SpectralFlow::closure_margin) {
    outcome.status = Status::failed;
    outcome.message = fmt::format("t = {:.6g}: the closure \"{}\" ends here: {}", found.back().time, closure,
                                  flow.beyond(outcome.last.state));
  }
  return outcome;
}

}  // namespace iclflow
