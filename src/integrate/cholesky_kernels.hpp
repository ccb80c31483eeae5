#pragma once

#include <Eigen/Core>
#include <cstddef>

namespace iclflow {

/// Cholesky factors A = U^T U of a symmetric positive definite matrix, in the instruction set of the machine.
class Cholesky {
 public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Factors matrix + shift I, of which the upper triangle is read. False if that is not positive definite.
  [[nodiscard]] bool factor(const Eigen::MatrixXd& matrix, double shift);
  /// x = A^-1 b; may be the same vector.
  void solve(const Eigen::VectorXd& b, Eigen::VectorXd& x);

 private:
  Eigen::Index size_ = 0;
  Rows rows_;  ///< U, padded with zeros beyond its columns
  Eigen::VectorXd padded_;
};

}  // namespace iclflow
