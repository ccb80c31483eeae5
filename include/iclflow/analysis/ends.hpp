#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "iclflow/problem/spectral_state.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// How a task is served.
enum class End {
  dedicated,   ///< by one head that serves no other task
  superposed,  ///< by one head that serves other tasks, too
  shared,      ///< by several heads of like sign
  zero_sum,    ///< by heads of both signs whose mu cancel: a linear map, as omega -> 0
  opposed,     ///< by heads of both signs whose mu do not cancel
  unlearned    ///< by none: sum_h mu omega < 1/2
};
inline constexpr int end_count = 6;
[[nodiscard]] std::string_view name(End end);

/// A head with less than this part of a task's sum_h |mu| has no part in it.
inline constexpr double unused_part = 0.01;
/// mu cancel when |sum_h mu| is below this part of sum_h |mu|.
inline constexpr double cancelling_part = 0.1;

/// How each task is served by mu, omega_block (H x I).
[[nodiscard]] std::vector<End> classify_ends(const Matrix& mu, const Matrix& omega_block);

/// Which head emerges on each task: the largest mu omega at the first sample at which half of the task's bias is gone,
/// sum_h mu omega > 1 - 1/sqrt(2). Empty where that never happens. Needs the observables mu and omega_block.
[[nodiscard]] std::vector<std::optional<int>> emerging_heads(const Trajectory& trajectory);

}  // namespace iclflow
