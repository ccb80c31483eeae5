#include "iclflow/problem/rotation.hpp"

#include <Eigen/QR>
#include <cstdint>

#include "iclflow/random/stream.hpp"

namespace iclflow {

namespace {

/// Haar-distributed orthogonal matrix: QR of a Gaussian matrix with the signs of R's diagonal moved into Q (Mezzadri
/// 2007).
Matrix random_orthogonal(int size, std::uint64_t seed, std::uint32_t which) {
  NormalStream normal({seed, Stream::rotation, which, 0});
  Eigen::MatrixXd gaussian(size, size);
  for (double& entry : gaussian.reshaped()) entry = normal();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd q = qr.householderQ();
  for (int j = 0; j < size; ++j) {
    if (qr.matrixQR()(j, j) < 0.0) q.col(j) *= -1.0;
  }
  return q;
}

}  // namespace

Rotations rotations(const Problem& problem) {
  if (problem.rotation == Rotation::identity) {
    return {Matrix::Identity(problem.dimension(), problem.dimension()),
            Matrix::Identity(problem.tasks(), problem.tasks())};
  }
  return {random_orthogonal(problem.dimension(), problem.rotation_seed, 0),
          random_orthogonal(problem.tasks(), problem.rotation_seed, 1)};
}

}  // namespace iclflow
