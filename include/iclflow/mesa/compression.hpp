#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/mesa/sequences.hpp"
#include "iclflow/mesa/stack.hpp"

namespace iclflow {

/// What a head of constructed tokens does, D x D each. Scores are e_{t'}^T key_query e_t and token t' adds
/// output_value e_{t'} (theory: eq:head-products). Rows of key_query are coordinates of the key's token, columns of the
/// query's; rows of output_value are outputs. The factor of softmax scores is part of key_query.
struct HeadProducts {
  Eigen::MatrixXd key_query;
  Eigen::MatrixXd output_value;
};
/// [layer][head]
using StackProducts = std::vector<std::vector<HeadProducts>>;

/// A model as a shape and its parameters.
struct StackModelWeights {
  StackShape shape;
  Eigen::VectorXd parameters;
};

/// All throw std::invalid_argument for raw tokens, mesa layers and keys of length 1, which products do not describe.
[[nodiscard]] StackProducts head_products(const StackShape& shape, const Eigen::VectorXd& parameters);
/// The stack with these products: key_dimension = D, W_k = P = I. Layers, clip and mask are those of `shape`.
[[nodiscard]] StackModelWeights stack_of(const StackShape& shape, const StackProducts& products);

/// Mean of the diagonal of every n x n block, by channel (4 x 4 for the constructed tokens).
[[nodiscard]] Eigen::MatrixXd block_means(const Eigen::MatrixXd& product, int state_dimension);

/// Every block of every product replaced by the mean of its diagonal times the identity: 16 + 16 numbers per head
/// (theory: eq:compression).
[[nodiscard]] StackModelWeights compress(const StackShape& shape, const Eigen::VectorXd& parameters);
inline constexpr int compressed_parameters_per_head = 32;

/// The stack with the means of the products of two stacks of the same layers and heads: products, not their factors,
/// which are determined only up to a change of basis.
[[nodiscard]] StackModelWeights interpolate(const StackModelWeights& one, const StackModelWeights& other);

/// A finished training: the weights at the end and, where they were kept, along the way.
struct TrainedRun {
  std::uint64_t seed = 0;
  Eigen::VectorXd parameters;
  std::vector<double> steps{};
  std::vector<Eigen::VectorXd> samples{};  ///< as many as steps
};

/// [compression]: losses of compressed and interpolated models.
struct CompressionPlan {
  std::size_t sequences = 1000;  ///< 0, 1, ... of (seed, Stream::evaluation)
  std::uint64_t seed = 1;
  bool along_training = true;  ///< also of the weights that were kept on the way
};
[[nodiscard]] std::optional<CompressionPlan> read_compression(const Section& root);
void resolve(const CompressionPlan& plan, TomlText& text);

/// {trained_loss, loss, interpolated_loss, parameters_per_head, along: [{seed, step, trained_loss, compressed_loss,
/// interpolated_loss}]}: of the weights themselves, of the compressed ones, of those half way; means over runs, with
/// *_standard_error. Along the way every step's weights are compressed, and interpolated with those that the run's end
/// compresses to. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json compression_of_runs(const CompressionPlan& plan, const SequenceProblem& problem,
                                                         const StackShape& shape, const std::vector<TrainedRun>& runs,
                                                         int threads, const std::function<bool()>& interrupted);

}  // namespace iclflow
