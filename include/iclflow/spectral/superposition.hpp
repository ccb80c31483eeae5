#pragma once

#include <vector>

#include "iclflow/problem/problem.hpp"

namespace iclflow {

/// Fewer heads than tasks: each task is served by one head, and a head serves all of its tasks as best it can alone.
/// Closure large-context; ell (half, noise-free target, summed over tasks).
struct Superposition {
  double loss;
  std::vector<double> mu;     ///< of each task's head
  std::vector<double> omega;  ///< of each task's head on the task's block
};
/// head[i] serves task i. Equal tasks: x = e n phi d / L for a head of n tasks. Throws std::invalid_argument unless
/// head has one entry of 0..H-1 per task. Source: theory/05-closed-forms.md.
[[nodiscard]] Superposition superposed_limit(const Problem& problem, const std::vector<int>& head);

}  // namespace iclflow
