#pragma once

#include <Eigen/Core>
#include <vector>

#include "rock4_coefficients.hpp"
#include "single_step.hpp"
#include "spectral_radius.hpp"

namespace iclflow {

/// Stabilised explicit Runge-Kutta method of order 4 for Jacobians whose eigenvalues are real and not positive, as
/// those of a gradient flow are in any of its charts: s velocities cover a step of 0.35 s^2 over the spectral radius.
/// No Jacobian, no linear algebra. Source: theory/10-steppers.md; Abdulle, SIAM J. Sci. Comput. 23, 2041 (2002).
class Rock4 final : public SingleStep {
 public:
  using SingleStep::SingleStep;

  /// Spectral radius at the last accepted step, safety included.
  [[nodiscard]] double radius() const { return radius_.value(); }
  /// Updates it away from a step of this method.
  double update_radius(const Point& at);
  /// Velocities per step of that size times spectral radius; beyond the longest step, those of several.
  [[nodiscard]] static double cost(double scaled_step);

  void remember(std::vector<double>& memory) const override;
  void recall(const std::vector<double>& memory) override;

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) override;
  [[nodiscard]] int error_power() const override { return 4; }
  void choose(double scaled_step);
  void advance(const Point& from, double dt);
  void finish(double dt, Point& to);

  /// K_j = mu h f(K_{j-1}) + nu K_{j-1} + kappa K_{j-2}
  struct Recurrence {
    double mu;
    double nu;
    double kappa;
  };
  static std::vector<Recurrence> recurrence(const Rock4Coefficients& method);

  SpectralRadius radius_;
  int age_ = 0;  ///< accepted steps since the radius was estimated
  std::size_t chosen_ = 0;
  std::vector<std::vector<Recurrence>> recurrences_{rock4_coefficients.size()};  ///< made when first used
  Eigen::VectorXd last_, now_, next_, rate_, g1_, g2_, g3_, g4_, error_;
};

}  // namespace iclflow
