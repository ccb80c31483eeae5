#pragma once

#include <Eigen/Core>
#include <vector>

namespace iclflow {

/// Polynomials p(x) = sum_k c_k P_k(2 x - 1) in Legendre's polynomials: on [0, 1], where the eigenvalues of a
/// normalised matrix lie, least squares in them is far better conditioned than in powers of x.
/// x p(x), one degree higher.
[[nodiscard]] Eigen::VectorXd times_argument(const Eigen::VectorXd& polynomial);

/// A loss that is quadratic in the coefficients of a prediction sum_k c_k F_k:
/// constant - slope . c + c . curvature c / 2.
struct QuadraticLoss {
  double constant = 0.0;
  Eigen::VectorXd slope;
  Eigen::MatrixXd curvature;

  [[nodiscard]] static QuadraticLoss zero(Eigen::Index size);
  /// Of coefficients that may be fewer than the features.
  [[nodiscard]] double value(const Eigen::VectorXd& c) const;
  [[nodiscard]] Eigen::VectorXd gradient(const Eigen::VectorXd& c) const;
};

/// Richardson's iteration of second order for A z = b: z_0 = initial b,
/// z_{k+1} = z_k - alpha_k (A z_k - b) + beta_k (z_k - z_{k-1}), beta_0 = 0 (theory: eq:preconditioned-recursion).
struct Recursion {
  double initial = 1.0;
  std::vector<double> alpha;
  std::vector<double> beta;

  /// alpha = initial = 1, beta = 0: Neumann's series.
  [[nodiscard]] static Recursion neumann(int steps);
  /// p of z_steps = p(A) b.
  [[nodiscard]] Eigen::VectorXd polynomial() const;
};

/// Coefficients of the first `count` features that minimise the loss.
[[nodiscard]] Eigen::VectorXd least_squares(const QuadraticLoss& loss, int count);

/// The recursion of `steps` steps with the least loss that Levenberg-Marquardt finds from a fixed list of starts.
[[nodiscard]] Recursion trained_recursion(const QuadraticLoss& loss, int steps);

}  // namespace iclflow
