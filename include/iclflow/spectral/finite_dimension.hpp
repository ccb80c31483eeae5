#pragma once

#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

/// Closure C1, "finite-dimension": exact through O(1/L) as L grows at fixed d, the average over the query kept.
///
///   ell_i = (P_i / 2 d_i) { sum_k w_k r_k^2 + (1/L) [ 2 sum_h mu_hi D_hh sum_k w_k omega_hk r_k / (1 - 2 omega_hk^2)
///           + sum_hh' mu_hi mu_h'i D_hh' (d_i phi_i + sum_k w_k u / (1 - 2 u)) ] },  u = omega_hk omega_h'k, k in J_i,
///   D_hh' = prod_k (1 - 2 omega_hk omega_h'k)^{-w_k/2}.
///
/// An asymptotic correction: it overshoots where L is not large, and is meaningless where attention saturates. Domain:
/// 2 omega_hk omega_h'k < 1 and D_hh / L <= 0.2 (the mean of |p|^2 that D_hh / L stands for is at most 1). Loss and
/// derivatives exist up to D_hh / L = 0.4; beyond, they throw std::domain_error.
///
/// Every call costs O(H^2 (I + K)). One object may be used by several threads at once.
/// Source: theory/03-population-loss.md.
class FiniteDimension final : public PopulationLoss {
 public:
  FiniteDimension(const Problem& problem, const Coordinates& coordinates);
  [[nodiscard]] double value(const Eigen::VectorXd& state) const override;
  void gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const override;
  void hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                      Eigen::VectorXd& product) const override;
  [[nodiscard]] Eigen::VectorXd by_task(const Eigen::VectorXd& state) const override;
  /// min_h log(0.2 L / D_hh); -1e6 where some 2 omega_hk^2 >= 1.
  [[nodiscard]] double margin(const Eigen::VectorXd& state) const override;
  [[nodiscard]] std::string beyond(const Eigen::VectorXd& state) const override;

 private:
  /// What loss and gradient share, in numbers or in numbers with a derivative.
  template <typename Scalar>
  struct Moments;
  template <typename Scalar>
  void prepare(const Scalar* x, Moments<Scalar>& moments) const;
  template <typename Scalar>
  void add_overlap_slopes(const Scalar* x, const Moments<Scalar>& moments, Scalar* slope) const;
  template <typename Scalar>
  void gradient_of(const Scalar* x, Scalar* slope) const;
  /// log D_hh; infinite where it does not exist.
  [[nodiscard]] double log_overlap(const SpectralView<const double>& x, int head) const;
  void require_defined(const Eigen::VectorXd& state) const;

  int heads_, tasks_, size_;
  double length_;
  std::vector<int> task_;
  std::vector<double> multiplicity_;   ///< w_k
  std::vector<double> bias_weight_;    ///< b_i = P_i / d_i
  std::vector<double> noise_overlap_;  ///< d_i phi_i
};

}  // namespace iclflow
