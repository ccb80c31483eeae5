#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

/// [baselines]: predictors that learn nothing but a few numbers, on sampled sequences.
struct BaselinePlan {
  std::size_t sequences = 4000;
  std::uint64_t seed = 1;
  std::vector<double> ridge{0.1, 1.0, 10.0};       ///< lambda of (S S^T + I / lambda)^-1
  std::vector<int> preconditioned_steps{1, 2, 6};  ///< steps of the iteration for the inverse; 0: none
  double preconditioned_lambda = 1.0;              ///< lambda of the matrix that it inverts
  int stacked = 0;    ///< states under each other that the linear ones see; 0: one, where partially observed enough
  double clip = 0.0;  ///< predictions are also scored when clipped to [-clip, clip]; 0: only as they are
};

/// Empty without the table. model_clip: what `clip` is without its key. Throws InputError.
[[nodiscard]] std::optional<BaselinePlan> read_baselines(const Section& root, double model_clip = 0.0);
void resolve(const BaselinePlan& plan, TomlText& text);

}  // namespace iclflow
