#include "iclflow/regression/flow_phases.hpp"

#include <limits>

namespace iclflow {

Phases locate_phases(const OdeSystem& flow, const StepperOptions& stepper, double final_time, double initial_loss,
                     double end_loss) {
  const double drop = initial_loss - end_loss;
  // A drop of rounding size has no phases.
  if (!(drop > 64.0 * std::numeric_limits<double>::epsilon() * initial_loss) || final_time <= 0.0) return {};
  std::vector<Event> events;
  for (const double fraction : phase_fractions) {
    events.push_back({"loss", initial_loss - fraction * drop, Direction::falling, fraction == phase_fractions[2]});
  }
  const Outcome outcome = integrate(flow, {0.0, final_time}, stepper, events);
  Phases phases;
  for (const EventRecord& record : outcome.trajectory.events) {
    for (int k = 0; k < 3; ++k) {
      auto& time = k == 0 ? phases.warm_up_end : (k == 1 ? phases.emergence_time : phases.emergence_end);
      if (record.level == events[static_cast<std::size_t>(k)].level && !time) time = record.time;
    }
  }
  return phases;
}

}  // namespace iclflow
