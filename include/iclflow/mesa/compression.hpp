#pragma once

#include <Eigen/Core>
#include <nlohmann/json.hpp>
#include <vector>

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

/// All throw std::invalid_argument for raw tokens; those that make a stack of products also for mesa layers and keys of
/// length 1, which products do not describe.
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

/// {loss, interpolated_loss, parameters_per_head, trained_loss} on a batch: of the compressed model, of that half way
/// to it, of the model itself.
[[nodiscard]] nlohmann::ordered_json compression_summary(const StackModelWeights& trained, const StackBatch& batch,
                                                         int threads);

}  // namespace iclflow
