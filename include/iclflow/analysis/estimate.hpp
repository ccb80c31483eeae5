#pragma once

#include <optional>
#include <span>

namespace iclflow {

/// A value with the standard error over seeds (empty with fewer than two).
struct Estimate {
  double value = 0.0;
  std::optional<double> standard_error;
};

/// Mean over values and its standard error, empty with fewer than two. Throws std::invalid_argument without values.
[[nodiscard]] Estimate mean_estimate(std::span<const double> values);

}  // namespace iclflow
