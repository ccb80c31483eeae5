#pragma once

#include <cstddef>
#include <vector>

#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

struct CorrelationShape;

/// Closure C0, "large-context": the leading order for large d and L with omega = O(d^{-1/2}).
///
///   ell = sum_i (P_i / 2) { (1/d_i) sum_{k in J_i} w_k r_k^2 + (phi_i / L) mu_i^T E mu_i },
///   r_k = 1 - sum_h mu_hi omega_hk,   E_hh' = exp(sum_k w_k omega_hk omega_h'k).
///
/// Every call costs O(H^2 (I + K)). The coordinates of a task must be neighbours (std::invalid_argument). One object
/// may be used by several threads at once: scratch space is per thread. Source: theory/03-population-loss.md; Chen,
/// Sheen, Wang, Yang 2024, arXiv:2402.19442, appendix on the loss.
class LargeContext final : public PopulationLoss {
 public:
  LargeContext(const Problem& problem, const Coordinates& coordinates);
  [[nodiscard]] double value(const Eigen::VectorXd& state) const override;
  void gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const override;
  void hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                      Eigen::VectorXd& product) const override;
  void hessian(const Eigen::VectorXd& state, Eigen::MatrixXd& matrix) const override;
  [[nodiscard]] Eigen::VectorXd by_task(const Eigen::VectorXd& state) const override;

 private:
  struct Scratch;
  /// What the kernel of the gradient needs to know; points into this object.
  [[nodiscard]] CorrelationShape shape() const;
  /// Fills the residual, the weighted omega and E, which all four functions need.
  void prepare(const SpectralView<const double>& x, Scratch& scratch) const;
  /// Hessian times v of the term in E: written; of the term in r: added, and the residual in scratch is used up.
  void variance_curvature(const SpectralView<const double>& x, const SpectralView<const double>& v, Scratch& scratch,
                          SpectralView<double>& result) const;
  void add_bias_curvature(const SpectralView<const double>& x, const SpectralView<const double>& v, Scratch& scratch,
                          SpectralView<double>& result) const;

  int heads_;
  int tasks_;
  Coordinates coordinates_;
  Eigen::RowVectorXd multiplicity_;        ///< w_k
  Eigen::RowVectorXd bias_weight_;         ///< (P_i / d_i) w_k of coordinate k
  Eigen::RowVectorXd noise_weight_;        ///< P_i phi_i / L of task i
  std::vector<std::size_t> block_begin_;   ///< first coordinate of each task, and one entry more
  std::vector<double> root_noise_weight_;  ///< of the kernel that takes the gradient: square roots of the weights,
  std::vector<double> root_multiplicity_;  ///< padded with zeros
  std::vector<double> inverse_root_multiplicity_;
  std::vector<double> root_bias_weight_;
};

}  // namespace iclflow
