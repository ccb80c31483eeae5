#include "iclflow/analysis/ends.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

namespace iclflow {

namespace {

/// Heads that take part in a task; theirs are at least unused_part of sum_h |mu|.
std::vector<int> serving_heads(const Eigen::VectorXd& mu) {
  std::vector<int> heads;
  const double total = mu.cwiseAbs().sum();
  for (Eigen::Index h = 0; h < mu.size(); ++h) {
    if (std::abs(mu[h]) > unused_part * total) heads.push_back(static_cast<int>(h));
  }
  return heads;
}

End classify_several(const Eigen::VectorXd& mu) {
  const double total = mu.cwiseAbs().sum();
  if (std::abs(mu.sum()) < cancelling_part * total) return End::zero_sum;
  // What is left of one sign must be more than what a head without part may hold.
  return total - std::abs(mu.sum()) > 2.0 * unused_part * total ? End::opposed : End::shared;
}

}  // namespace

std::string_view name(End end) {
  static constexpr std::string_view names[end_count] = {"dedicated", "superposed", "shared",
                                                        "zero_sum",  "opposed",    "unlearned"};
  return names[static_cast<int>(end)];
}

std::vector<End> classify_ends(const Matrix& mu, const Matrix& omega_block) {
  if (mu.rows() != omega_block.rows() || mu.cols() != omega_block.cols()) {
    throw std::invalid_argument("ends need mu and block means of omega of one shape, heads x tasks");
  }
  std::vector<End> ends;
  std::vector<int> alone(static_cast<std::size_t>(mu.cols()), -1);
  for (Eigen::Index i = 0; i < mu.cols(); ++i) {
    const Eigen::VectorXd column = mu.col(i);
    if (!(column.dot(omega_block.col(i)) > 0.5)) {
      ends.push_back(End::unlearned);
      continue;
    }
    const std::vector<int> serving = serving_heads(column);
    if (serving.size() == 1) alone[static_cast<std::size_t>(i)] = serving.front();
    ends.push_back(serving.size() == 1 ? End::dedicated : classify_several(column));
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t k = 0; k < alone.size(); ++k) {
      if (i != k && alone[i] >= 0 && alone[i] == alone[k]) ends[i] = End::superposed;
    }
  }
  return ends;
}

std::vector<std::optional<int>> emerging_heads(const Trajectory& trajectory) {
  const Observable& mu = trajectory["mu"];
  const Observable& omega = trajectory["omega_block"];
  const std::size_t heads = mu.shape.at(0);
  const std::size_t tasks = mu.shape.at(1);
  std::vector<std::optional<int>> emerging(tasks);
  for (std::size_t k = 0; k < trajectory.samples(); ++k) {
    for (std::size_t i = 0; i < tasks; ++i) {
      if (emerging[i]) continue;
      double sum = 0.0;
      double largest = 0.0;
      std::size_t winner = 0;
      for (std::size_t h = 0; h < heads; ++h) {
        const double product = mu.at(k)[h * tasks + i] * omega.at(k)[h * tasks + i];
        sum += product;
        if (product > largest) winner = h;
        largest = std::max(largest, product);
      }
      if (sum > 1.0 - 1.0 / std::numbers::sqrt2) emerging[i] = static_cast<int>(winner);
    }
  }
  return emerging;
}

}  // namespace iclflow
