#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// Which head serves which task. A head's share of task i is mu_i^h * mean_{J_i} omega^h over the sum of all heads.
struct Allocation {
  std::vector<std::optional<int>> head;  ///< per task, the largest |mu omega|; empty when nothing is learned
  Matrix share;                          ///< H x I; columns sum to 1; zero where nothing is learned
  std::vector<std::vector<int>>
      ties;  ///< per task, the heads within tie_tolerance of the winner (2 or more), else empty
  std::vector<std::pair<int, std::vector<int>>> double_winners;  ///< head and its tasks, where it wins more than one
};
inline constexpr double tie_tolerance = 1e-3;  ///< relative difference of |mu omega|

/// mu, omega_block: H x I.
[[nodiscard]] Allocation allocate(const Matrix& mu, const Matrix& omega_block);

}  // namespace iclflow
