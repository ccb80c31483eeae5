#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/attention/score_space.hpp"

namespace iclflow {

/// Classical estimators of the task vector from one context's tokens, block by block: task i is regressed on x_{J_i}.
enum class EstimatorKind { ridge, least_squares, gradient_step, debiased_gradient_step, averaging };

struct EstimatorInfo {
  EstimatorKind kind;
  std::string_view name;
  std::string_view description;  ///< one line
  bool has_rate;                 ///< takes an eta
};
[[nodiscard]] const std::vector<EstimatorInfo>& estimator_kinds();

struct Estimator {
  std::string name;
  EstimatorKind kind = EstimatorKind::ridge;
  std::optional<double> rate{};    ///< eta of a gradient step; empty: the best one of the training law at each length
  std::optional<double> lambda{};  ///< of ridge, above 0; empty: sigma^2/a_i of the training law
};

/// eta of a gradient step on task i: the given one, 1 for averaging, else the best of the problem's law and length.
[[nodiscard]] double rate(const Estimator& estimator, const Problem& problem, int task);

/// Exact ell of an estimator in closed form under the problem's law at its context length: least squares and gradient
/// steps. Empty for ridge with noise, and where the expectation is infinite.
[[nodiscard]] std::optional<double> exact_loss(const Estimator& estimator, const Problem& problem);

/// Order of the highest finite moment (at most 2) of an estimator's loss over contexts with this noise: least squares
/// with noise has no mean where |L - d_i| <= 1 and no variance where |L - d_i| <= 3.
[[nodiscard]] int finite_moments(const Estimator& estimator, const Problem& problem, double noise_variance);

/// Losses of estimators that know the training law, on given covariates with G and eps integrated out: half the squared
/// error, noise-free target, summed over tasks (theory: eq:estimator-loss). One object per thread.
class EstimatorLosses {
 public:
  /// problem: the training law at the context's length. noise_variance: of the contexts' eps.
  EstimatorLosses(const Problem& problem, std::vector<Estimator> estimators, double noise_variance);
  /// losses: one per estimator.
  void operator()(const CovariateView& context, std::span<double> losses);

 private:
  struct Block;
  [[nodiscard]] double loss(std::size_t estimator, const Block& block) const;

  Problem problem_;
  std::vector<Estimator> estimators_;
  std::vector<std::vector<double>> rates_;  ///< by estimator and task; lambda for those that invert
  double noise_variance_;
  bool spectrum_needed_;
};

}  // namespace iclflow
