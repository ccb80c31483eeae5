#pragma once

#include <Eigen/Core>

#include "iclflow/problem/problem.hpp"

namespace iclflow {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The coordinates in which omega is held: either all d_x of them, or one per block when omega is
/// constant on blocks. A coordinate k stands for multiplicity[k] equal covariate directions of task[k].
struct Coordinates {
  std::vector<int> task;             ///< task of coordinate k
  std::vector<double> multiplicity;  ///< w_k; sum over a task's coordinates is d_i

  [[nodiscard]] int size() const { return static_cast<int>(task.size()); }
  static Coordinates full(const Problem& problem);
  static Coordinates blocks(const Problem& problem);
};

/// The semi-singular values: mu (H x I) of the output-value circuits and omega (H x K) of the
/// key-query circuits, signs included. Source: theory/02-reduction.md.
struct SpectralState {
  Matrix mu;     ///< H x I
  Matrix omega;  ///< H x K, K = Coordinates::size()

  [[nodiscard]] Eigen::VectorXd flat() const;  ///< mu row-major, then omega row-major
  static SpectralState from_flat(const Eigen::Ref<const Eigen::VectorXd>& flat, int heads, int tasks, int coordinates);
};

/// Views of one flat vector (mu row-major, then omega row-major); nothing is copied.
template <typename Scalar>
struct SpectralView {
  using Map = Eigen::Map<std::conditional_t<std::is_const_v<Scalar>, const Matrix, Matrix>>;
  Map mu;
  Map omega;
  SpectralView(Scalar* flat, int heads, int tasks, int coordinates)
      : mu(flat, heads, tasks), omega(flat + static_cast<Eigen::Index>(heads) * tasks, heads, coordinates) {}
};

/// True when every row of omega (H x d_x) is exactly constant on every block J_i.
[[nodiscard]] bool constant_on_blocks(const Problem& problem, const Matrix& omega);
/// H x d_x -> H x I means over blocks.
[[nodiscard]] Matrix block_means(const Problem& problem, const Matrix& omega);
/// H x I -> H x d_x, repeating each value over its block.
[[nodiscard]] Matrix expand_blocks(const Problem& problem, const Matrix& omega_block);

}  // namespace iclflow
