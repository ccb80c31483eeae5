#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "iclflow/analysis/comparison.hpp"

namespace iclflow {

/// Mean of the last half of the samples (of 2n + 1 samples the last n + 1). Throws std::invalid_argument when empty.
[[nodiscard]] double late_mean(std::span<const double> samples);

/// Mean over members of late_mean of a scalar observable, with the standard error over seeds; members without samples
/// do not count. Throws std::invalid_argument when there is none.
[[nodiscard]] Estimate late_mean(const DynamicsResult& result, std::string_view observable);

}  // namespace iclflow
