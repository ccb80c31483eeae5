#include "iclflow/analysis/allocation.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace iclflow {
namespace {

void allocate_task(const Eigen::VectorXd& product, Eigen::Index task, Allocation& allocation) {
  Eigen::Index winner = 0;
  const double strongest = product.cwiseAbs().maxCoeff(&winner);
  std::vector<int> tied;
  if (!(strongest > 0.0)) {
    allocation.head.emplace_back();
    allocation.ties.push_back(tied);
    return;
  }
  allocation.head.emplace_back(static_cast<int>(winner));
  for (Eigen::Index h = 0; h < product.size(); ++h) {
    if (std::abs(product[h]) >= (1.0 - tie_tolerance) * strongest) tied.push_back(static_cast<int>(h));
  }
  if (tied.size() < 2) tied.clear();
  allocation.ties.push_back(tied);
  // share_hi = mu_i^h omega_i^h / sum_g mu_i^g omega_i^g                  theory: eq:allocation
  // Heads may cancel each other to rounding; then no share means anything.
  const double total = product.sum();
  const double rounding = std::numeric_limits<double>::epsilon() * product.cwiseAbs().sum();
  if (std::abs(total) > rounding) allocation.share.col(task) = product / total;
}

}  // namespace

Allocation allocate(const Matrix& mu, const Matrix& omega_block) {
  if (mu.rows() != omega_block.rows() || mu.cols() != omega_block.cols()) {
    throw std::invalid_argument("allocation needs mu and block means of omega of one shape, heads x tasks");
  }
  Allocation allocation;
  allocation.share = Matrix::Zero(mu.rows(), mu.cols());
  if (mu.rows() == 0) return allocation;
  // strength of head h on task i: mu_i^h * mean over J_i of omega^h
  const Matrix strength = mu.cwiseProduct(omega_block);
  for (Eigen::Index task = 0; task < mu.cols(); ++task) allocate_task(strength.col(task), task, allocation);
  std::vector<std::vector<int>> won(static_cast<std::size_t>(mu.rows()));
  for (std::size_t task = 0; task < allocation.head.size(); ++task) {
    if (allocation.head[task]) won[static_cast<std::size_t>(*allocation.head[task])].push_back(static_cast<int>(task));
  }
  for (std::size_t h = 0; h < won.size(); ++h) {
    if (won[h].size() > 1) allocation.double_winners.emplace_back(static_cast<int>(h), won[h]);
  }
  return allocation;
}

}  // namespace iclflow
