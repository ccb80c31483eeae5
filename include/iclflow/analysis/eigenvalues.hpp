#pragma once

#include <Eigen/Core>
#include <functional>

namespace iclflow {

/// Largest eigenvalues of a symmetric operator, in falling order, with orthonormal eigenvectors as columns.
struct Eigenpairs {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;  ///< size x count
  int applications = 0;     ///< of the operator
};

/// Matrix-free: the operator is known by what it does to a vector only. Lanczos with implicit restarts finds one
/// copy of an eigenvalue of several; what was found is therefore moved to the lower end of the spectrum and the search
/// repeated until a pass brings nothing that belongs among the `count` largest.
/// tolerance: relative residual; the operator's own error should be below it. Throws std::invalid_argument unless
/// 0 < count < size, std::runtime_error when Lanczos does not converge.
[[nodiscard]] Eigenpairs largest_eigenvalues(
    Eigen::Index size, const std::function<void(const Eigen::VectorXd& direction, Eigen::VectorXd& image)>& apply,
    Eigen::Index count, double tolerance);

}  // namespace iclflow
