#pragma once

#include <optional>
#include <span>

namespace iclflow {

/// How a curve that starts near zero leaves it downwards: exponentially between two levels.
struct Escape {
  double growth_rate = 0.0;  ///< slope of ln(-value), least squares over the samples between the levels
  double time = 0.0;         ///< when -value first reaches `high`, interpolated in the logarithm
};

/// Between the last time that -value is below `low` before it first reaches `high`, and that time. Empty where `high`
/// is never reached or fewer than three samples lie between. times increasing; 0 < low < high.
[[nodiscard]] std::optional<Escape> find_escape(std::span<const double> times, std::span<const double> values,
                                                double low, double high);

}  // namespace iclflow
