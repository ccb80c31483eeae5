#include "iclflow/problem/spectral_state.hpp"

#include <cstddef>
#include <utility>

namespace iclflow {

Coordinates Coordinates::full(const Problem& problem) {
  auto task = problem.task_of_coordinate();
  std::vector<double> ones(task.size(), 1.0);
  return {std::move(task), std::move(ones)};
}

Coordinates Coordinates::blocks(const Problem& problem) {
  Coordinates blocks;
  for (int i = 0; i < problem.tasks(); ++i) {
    blocks.task.push_back(i);
    blocks.multiplicity.push_back(problem.task_dimensions[static_cast<std::size_t>(i)]);
  }
  return blocks;
}

Eigen::VectorXd SpectralState::flat() const {
  Eigen::VectorXd result(mu.size() + omega.size());
  SpectralView<double> view(result.data(), static_cast<int>(mu.rows()), static_cast<int>(mu.cols()),
                            static_cast<int>(omega.cols()));
  view.mu = mu;
  view.omega = omega;
  return result;
}

SpectralState SpectralState::from_flat(const Eigen::Ref<const Eigen::VectorXd>& flat, int heads, int tasks,
                                       int coordinates) {
  const SpectralView<const double> view(flat.data(), heads, tasks, coordinates);
  return {view.mu, view.omega};
}

bool constant_on_blocks(const Problem& problem, const Matrix& omega) {
  for (int i = 0; i < problem.tasks(); ++i) {
    const auto block = omega.middleCols(problem.block_begin(i), problem.task_dimensions[static_cast<std::size_t>(i)]);
    if (((block.colwise() - block.col(0)).array() != 0.0).any()) return false;
  }
  return true;
}

Matrix block_means(const Problem& problem, const Matrix& omega) {
  Matrix means(omega.rows(), problem.tasks());
  for (int i = 0; i < problem.tasks(); ++i) {
    means.col(i) =
        omega.middleCols(problem.block_begin(i), problem.task_dimensions[static_cast<std::size_t>(i)]).rowwise().mean();
  }
  return means;
}

Matrix expand_blocks(const Problem& problem, const Matrix& omega_block) {
  Matrix omega(omega_block.rows(), problem.dimension());
  for (int i = 0; i < problem.tasks(); ++i) {
    omega.middleCols(problem.block_begin(i), problem.task_dimensions[static_cast<std::size_t>(i)]).colwise() =
        omega_block.col(i);
  }
  return omega;
}

}  // namespace iclflow
