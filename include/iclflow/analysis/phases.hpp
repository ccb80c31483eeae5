#pragma once

#include <optional>
#include <span>

namespace iclflow {

/// Times at which 5 %, 50 %, 95 % of loss(0) - end_loss are gone (t_w, t_0, t_e); empty where not reached.
struct Phases {
  std::optional<double> warm_up_end;
  std::optional<double> emergence_time;
  std::optional<double> emergence_end;
};
inline constexpr double phase_fractions[3] = {0.05, 0.50, 0.95};

/// First crossings, interpolated between samples (monotone cubic). times increasing, one loss per time.
[[nodiscard]] Phases find_phases(std::span<const double> times, std::span<const double> loss, double end_loss);

}  // namespace iclflow
