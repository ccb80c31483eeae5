#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/mesa/compression.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// [compression]: the trained stack against the one with block means in place of its products.
struct CompressionPlan {
  bool along = true;  ///< also along the training: recorded weights half way to the means of the finished ones
};
/// Empty without the table. Throws InputError.
[[nodiscard]] std::optional<CompressionPlan> read_compression(const Section& root);
void resolve(const CompressionPlan& plan, TomlText& text);

/// trained_loss, loss, interpolated_loss, loss_ratio and interpolated_loss_ratio (to trained_loss, seed by seed), each
/// with _standard_error over seeds; parameters_per_head; by_seed; along: {step, compressed_loss, interpolated_loss},
/// arrays with their _standard_error: of the step's own block means, and half way to those of the finished weights.
/// result: a training that has ended, with "parameters" recorded where along is wanted. Losses on `batch`. Null when
/// interrupted.
[[nodiscard]] nlohmann::ordered_json compression_of_training(const CompressionPlan& plan, const StackShape& shape,
                                                             const DynamicsResult& result, const StackBatch& batch,
                                                             int threads, const std::function<bool()>& interrupted);

}  // namespace iclflow
