#pragma once

#include "iclflow/reduction/embedding.hpp"

namespace iclflow {

/// What full weights look like on the spectral manifold, and how far off it they are. Everything in the Phi, Psi basis.
struct Projection {
  Matrix mu;     ///< H x I, diagonal of U_Y
  Matrix omega;  ///< H x d, diagonal of the XX block of s_w K^T Q
  /// Root sum of squares over heads of the acting entries that the reduction says are zero.
  struct Leakage {
    double key_query = 0.0;     ///< off-diagonal XX (with s_w)
    double cross = 0.0;         ///< YX: keys read from responses
    double output_value = 0.0;  ///< off-diagonal U_Y
    double value_x = 0.0;       ///< U_X: values read from covariates
  } leakage;
};
[[nodiscard]] Projection project(const WeightLayout& layout, const Rotations& basis, const Eigen::VectorXd& weights);

/// The spectral start behind given weights: products, imbalances from the diagonals of the factors.
[[nodiscard]] InitialState project_start(const Problem& problem, const WeightLayout& layout, const Rotations& basis,
                                         const Eigen::VectorXd& weights);

}  // namespace iclflow
