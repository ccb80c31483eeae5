#pragma once

#include "iclflow/attention/score_space_attention.hpp"
#include "sampled_contexts.hpp"

namespace iclflow {

/// Sums over the contexts of a group.
struct SampledSums {
  Eigen::VectorXd bias;    ///< (1/2) a_i sum_k r_k^2, I
  Matrix overlap;          ///< C, H x H
  Matrix overlap_change;   ///< its derivative along a direction
  Eigen::VectorXd slope;   ///< of the bias with respect to mu, of everything with respect to omega: flat (mu, omega)
  Eigen::VectorXd change;  ///< derivative of slope along a direction

  SampledSums(int heads, int tasks, int size);
  void clear();
  void add(const SampledSums& other);
};

/// One thread's passes over contexts.
class SampledLoss::Worker {
 public:
  Worker(const Problem& problem, const Coordinates& coordinates);

  /// The state and, for curvature(), a direction that the following passes are for; may be null there.
  void look_at(const double* state, const double* direction);
  void value(const Contexts& contexts, int context, SampledSums& sums);
  void gradient(const Contexts& contexts, int context, SampledSums& sums);
  void curvature(const Contexts& contexts, int context, SampledSums& sums);

 private:
  void attend(const Contexts& contexts, int context, SampledSums& sums);
  void pull_back(const double* chi, double* slope);
  void change_of_attention(const double* chi, SampledSums& sums);
  void change_of_slopes(const double* chi, SampledSums& sums);
  [[nodiscard]] double mu(int h, int i) const { return state_[h * tasks_ + i]; }
  [[nodiscard]] double omega(int h, int k) const { return state_[heads_ * tasks_ + h * size_ + k]; }
  [[nodiscard]] double mu_change(int h, int i) const { return direction_[h * tasks_ + i]; }
  [[nodiscard]] double omega_change(int h, int k) const { return direction_[heads_ * tasks_ + h * size_ + k]; }

  int heads_, tasks_, size_;
  std::vector<int> task_;
  std::vector<double> amplitude_;  ///< a_i = s_y^2 lambda_i
  Eigen::VectorXd noise_weight_;   ///< a_i tau_i + sigma^2
  const double* state_ = nullptr;
  const double* direction_ = nullptr;
  Matrix shared_, shared_change_;  ///< N = sum_i (a_i tau_i + sigma^2) mu_i mu_i^T and its derivative
  std::vector<double> residual_;   ///< r_k
  ScoreSpaceAttention attention_;
  // Along a direction: of scores, then of attention weights; of slopes; H x stride or H x row.
  std::size_t row_;
  AlignedArray<double> weight_change_, score_slope_, score_slope_change_, along_, pooled_change_, overlap_change_,
      back_;
};

}  // namespace iclflow
