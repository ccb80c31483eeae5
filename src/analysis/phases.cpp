#include "iclflow/analysis/phases.hpp"

#include "iclflow/analysis/monotone_cubic.hpp"

namespace iclflow {
namespace {

std::optional<double> first_fall_to(std::span<const double> loss, const MonotoneCubic& curve, double level) {
  for (std::size_t k = 1; k < loss.size(); ++k) {
    if (loss[k - 1] > level && loss[k] <= level) return curve.crossing(k, level);
  }
  return std::nullopt;
}

}  // namespace

Phases find_phases(std::span<const double> times, std::span<const double> loss, double end_loss) {
  Phases phases;
  if (times.empty() || !(loss[0] > end_loss)) return phases;
  const MonotoneCubic curve(times, loss);
  // level(f) = ell(0) - f (ell(0) - ell(end))                             theory: eq:phases
  const auto reach = [&](double fraction) {
    return first_fall_to(loss, curve, loss[0] - fraction * (loss[0] - end_loss));
  };
  phases.warm_up_end = reach(phase_fractions[0]);
  phases.emergence_time = reach(phase_fractions[1]);
  phases.emergence_end = reach(phase_fractions[2]);
  return phases;
}

}  // namespace iclflow
