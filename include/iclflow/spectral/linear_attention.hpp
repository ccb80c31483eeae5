#pragma once

#include <Eigen/Core>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/spectral/product_flow.hpp"
#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

/// In-context linear regression with one task: x ~ N(0, diag(covariance)), w ~ N(0, I), y = w.x, N examples, no noise.
/// Attention is linear: yhat = beta^T M x_q with beta = (1/N) sum_n y_n x_n. Sources: theory/11-linear-attention.md.
struct LinearContexts {
  Eigen::VectorXd covariance{};  ///< eigenvalues, positive; D of them
  int length = 1;                ///< N

  [[nodiscard]] Eigen::Index dimension() const { return covariance.size(); }
  [[nodiscard]] bool white() const { return (covariance.array() == covariance(0)).all(); }
  /// Diagonal of S2 = E Lambda^hat^2, the second moment of the sample covariance.
  [[nodiscard]] Eigen::VectorXd second_moment() const;
};

/// Population loss (1/2) E (yhat - w.x_q)^2 of a D x D matrix M, and -d ell / d M.
[[nodiscard]] double linear_attention_loss(const LinearContexts& contexts, const Eigen::MatrixXd& m);
[[nodiscard]] Eigen::MatrixXd linear_attention_force(const LinearContexts& contexts, const Eigen::MatrixXd& m);
/// Diagonal of the best M.
[[nodiscard]] Eigen::VectorXd linear_attention_limit(const LinearContexts& contexts);
/// Losses of the fixed points M_0 .. M_D that have learned the m largest eigenvalues.
[[nodiscard]] std::vector<double> visited_losses(const LinearContexts& contexts);

/// yhat = sum_h v_h beta^T U_h x_q (merged: D x D matrices U_h), or U_h = k_h q_h^T (split: rank one).
/// Flat, head by head: v, then U row-major, or k and q.
struct LinearAttentionLayout {
  bool split = false;
  int heads = 1;
  Eigen::Index dimension = 1;

  [[nodiscard]] Eigen::Index head_size() const { return 1 + (split ? 2 * dimension : dimension * dimension); }
  [[nodiscard]] Eigen::Index size() const { return heads * head_size(); }
};
/// U_h.
[[nodiscard]] Eigen::MatrixXd key_query(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights, int head);
/// M = sum_h v_h U_h.
[[nodiscard]] Eigen::MatrixXd acting_matrix(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights);

/// Merged: v_h = scale, U_h = scale Lambda^2 / |Lambda^2|, along the direction that grows from zero.
/// Split: head h along eigenvector h mod D: v = k = q = scale.
[[nodiscard]] Eigen::VectorXd aligned_linear_start(const LinearContexts& contexts, const LinearAttentionLayout& layout,
                                                   double scale);

/// Merged and white: the loss as a function of p = sum_h v_h tr U_h / sqrt(D) on the aligned set, whose balanced flow
/// is that of a product; and its start, for weights that are small but not aligned the part of them that grows.
[[nodiscard]] ProductLoss white_product_loss(const LinearContexts& contexts);
[[nodiscard]] double white_product(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights);

/// Split and aligned: value v = k = q to which n heads on eigenvector `mode` grow, and the time from v0 to v (empty
/// when it is not between v0 and the limit).
[[nodiscard]] double split_limit(const LinearContexts& contexts, Eigen::Index mode, int n);
[[nodiscard]] std::optional<double> split_time(const LinearContexts& contexts, Eigen::Index mode, int n, double v0,
                                               double v);

/// Exact population gradient flow of (v, U) or (v, k, q).
/// Observables: loss, modes (coordinate; diagonal of M), and leakage_key_query, leakage_cross, leakage_output_value,
/// leakage_value_x, of which the last three are zero: the flow of all parameters never leaves this set.
class LinearAttentionFlow final : public OdeSystem {
 public:
  LinearAttentionFlow(LinearContexts contexts, LinearAttentionLayout layout, Eigen::VectorXd start);

  [[nodiscard]] Eigen::VectorXd initial() const override { return start_; }
  void declare(Trajectory& trajectory) const override;
  void observe(const Eigen::VectorXd& y, Trajectory& trajectory) const override;
  /// "loss", "modes[d]".
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& y) const override;
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override;
  [[nodiscard]] std::string component(Eigen::Index i) const override;

 private:
  LinearContexts contexts_;
  LinearAttentionLayout layout_;
  Eigen::VectorXd start_;
};

/// d of "modes[d]"; empty for anything else, or d not below the dimension.
[[nodiscard]] std::optional<Eigen::Index> mode_index(const std::string& quantity, Eigen::Index dimension);
/// Root sum of squares over heads of the off-diagonal entries of U_h.
[[nodiscard]] double off_diagonal(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights);
/// Observables of LinearAttentionFlow.
void declare_linear_attention(Eigen::Index dimension, Trajectory& trajectory);

}  // namespace iclflow
