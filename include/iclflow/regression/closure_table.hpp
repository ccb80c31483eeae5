#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/system.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/reduction/sampled_loss.hpp"

namespace iclflow {

/// [closures]: every closure against contexts drawn token by token, at closed-form weights, over block sizes and
/// context lengths.
struct ClosurePlan {
  std::vector<int> block_dimensions;  ///< d_i, of all tasks
  std::vector<int> context_lengths;   ///< L
  double numbers = 2e8;               ///< drawn for a cell's tokens: contexts x L x (d_x + d_y); at least 1000 contexts
  int contexts = 20000;               ///< of the closure "sampled"
  std::uint64_t seed = 1;             ///< every cell has its own contexts, derived from it

  void resolve(TomlText& text) const;
};

/// Reads [closures] of the root section; empty without it. Needs two heads. Throws InputError.
[[nodiscard]] std::optional<ClosurePlan> read_closures(const Section& root, const Problem& problem);

/// `closures` of summary.json: {cells: [{weights, block_dimension, context_length, tokens: {loss, standard_error,
/// contexts}, closures: [{closure, loss, standard_error, z}]}], sampled: {cells, largest_z, chi_square, probability}}.
/// weights: "dedicated" (the limit of one head per task), "single-head" (the best one), "pair" (opposite heads at
/// omega = d_x^{-1/2} / 2 and their best mu), heads beyond those that are needed zero. z = (closure - tokens) over both
/// standard errors; loss is null outside of a closure's domain. chi_square is the sum of z^2 of "sampled",
/// probability that of a larger one by chance.
[[nodiscard]] Evaluated evaluate_closures(const Problem& problem, const ClosurePlan& plan,
                                          const EvaluationControl& control);

}  // namespace iclflow
