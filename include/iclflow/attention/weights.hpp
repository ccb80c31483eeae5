#pragma once

#include <Eigen/Core>
#include <string>
#include <vector>

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// How the full parameters of all heads lie in one flat vector, head after head, every matrix row-major.
/// merged: W (d x d), U (I x I). split: K, Q, V (e x (d+I)), O (I x e); scores score_factor * z_l^T K^T Q z_q.
struct WeightLayout {
  Parametrisation parametrisation = Parametrisation::split;
  int heads = 0;
  int dimension = 0;  ///< d
  int tasks = 0;      ///< I
  int embedding = 0;  ///< e, split only; any positive size
  double score_factor = 1.0;

  static WeightLayout of(const Problem& problem);                 ///< e = d_x + d_y
  [[nodiscard]] int tokens() const { return dimension + tasks; }  ///< n, rows of a token (x; y)
  [[nodiscard]] Eigen::Index head_size() const;
  [[nodiscard]] Eigen::Index size() const { return heads * head_size(); }
};

/// Matrices of one head as views on the flat vector. merged: w = W, u = U; the others are empty, and vice versa.
template <typename Scalar>
struct HeadView {
  using Map = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const Matrix, Matrix>>;
  Map w, u;        ///< merged
  Map k, q, v, o;  ///< split
};
[[nodiscard]] HeadView<const double> head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h);
[[nodiscard]] HeadView<double> head(const WeightLayout& layout, Eigen::VectorXd& weights, int h);

/// Name of an entry of the flat vector for messages, e.g. "K[0](3,7)".
[[nodiscard]] std::string entry_name(const WeightLayout& layout, Eigen::Index entry);

/// The blocks that act on the prediction, per head: key_query (n x d): scores z_l^T key_query q, with the score factor;
/// output_value (I x n): yhat = sum_h output_value (Z p^h). Merged weights have zero Y rows and X columns.
struct ActingWeights {
  std::vector<Matrix> key_query;
  std::vector<Matrix> output_value;

  static ActingWeights zero(const WeightLayout& layout);
  ActingWeights& operator*=(double factor);
};
[[nodiscard]] ActingWeights acting(const WeightLayout& layout, const Eigen::VectorXd& weights);
/// The blocks of one head alone, for threads that share the heads; `result` has room for all of them.
void acting_of_head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h, ActingWeights& result);
/// Chain rule: gradient with respect to the acting blocks -> gradient with respect to the flat parameters.
void pull_back(const WeightLayout& layout, const Eigen::VectorXd& weights, const ActingWeights& acting_gradient,
               Eigen::VectorXd& gradient);
/// One head's part of it; `gradient` has the size of the layout.
void pull_back_head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h,
                    const ActingWeights& acting_gradient, Eigen::VectorXd& gradient);

}  // namespace iclflow
