#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "iclflow/random/stream.hpp"
#include "iclflow/spectral/linear_attention.hpp"

namespace iclflow {

/// All parameters of linear attention on tokens (x_n, y_n) that reach the prediction:
///   yhat = sum_h p_h^T G W_h x_q,  G = (1/N) sum_n (x_n; y_n)(x_n; y_n)^T,
/// p_h in R^(D+1) what the value reads (x, then y), W_h (D+1) x D keys (of x, then y) against the query's covariates;
/// split: W_h = k_h q_h^T. Flat, head by head: p, then W row-major, or k and q. The reduced set has p = (0, v) and keys
/// that do not read y.
struct FullLinearLayout {
  bool split = false;
  int heads = 1;
  Eigen::Index dimension = 1;

  [[nodiscard]] Eigen::Index token() const { return dimension + 1; }
  [[nodiscard]] Eigen::Index head_size() const { return token() + (split ? token() + dimension : token() * dimension); }
  [[nodiscard]] Eigen::Index size() const { return heads * head_size(); }
  [[nodiscard]] LinearAttentionLayout reduced() const { return {split, heads, dimension}; }
};
/// Reduced weights as full ones, and the reduced part of full ones.
[[nodiscard]] Eigen::VectorXd embed_linear(const FullLinearLayout& layout, const Eigen::VectorXd& reduced);
[[nodiscard]] Eigen::VectorXd project_linear(const FullLinearLayout& layout, const Eigen::VectorXd& full);

struct LinearSimulationOptions {
  std::uint64_t seed = 1;
  int batch = 1000;
  int evaluation_contexts = 2000;
  int threads = 1;  ///< never changes a bit of the result
};

/// Stochastic gradient descent on fresh contexts. Observables of LinearAttentionFlow, and loss_standard_error: the
/// recorded loss is the closed form at the weights' own M plus the mean over fixed contexts of the difference to the
/// reduced model's loss on them, its error that of the mean.
[[nodiscard]] std::unique_ptr<DescentSystem> make_linear_descent(const LinearContexts& contexts,
                                                                 const FullLinearLayout& layout,
                                                                 const Eigen::VectorXd& weights,
                                                                 const LinearSimulationOptions& options);

/// Mean over contexts of one key of the loss and its gradient, for checks.
struct LinearGradient {
  double loss = 0.0;
  Eigen::VectorXd gradient;
};
[[nodiscard]] LinearGradient linear_gradient(const LinearContexts& contexts, const FullLinearLayout& layout,
                                             const Eigen::VectorXd& weights, const StreamKey& key, std::size_t count,
                                             int threads);

}  // namespace iclflow
