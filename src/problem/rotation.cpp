#include "iclflow/problem/rotation.hpp"

#include <Eigen/QR>

namespace iclflow {

// QR of a Gaussian matrix with the signs of R's diagonal moved into Q.
Matrix random_orthogonal(NormalStream& normal, int size) {
  Eigen::MatrixXd gaussian(size, size);
  for (double& entry : gaussian.reshaped()) entry = normal();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd q = qr.householderQ();
  for (int j = 0; j < size; ++j) {
    if (qr.matrixQR()(j, j) < 0.0) q.col(j) *= -1.0;
  }
  return q;
}

Rotations rotations(const Problem& problem) {
  if (problem.rotation == Rotation::identity) {
    return {Matrix::Identity(problem.dimension(), problem.dimension()),
            Matrix::Identity(problem.tasks(), problem.tasks())};
  }
  NormalStream of_phi({problem.rotation_seed, Stream::rotation, 0, 0});
  NormalStream of_psi({problem.rotation_seed, Stream::rotation, 1, 0});
  return {random_orthogonal(of_phi, problem.dimension()), random_orthogonal(of_psi, problem.tasks())};
}

}  // namespace iclflow
