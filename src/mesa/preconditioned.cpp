#include "iclflow/mesa/preconditioned.hpp"

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

namespace iclflow {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

/// theta = (initial, alpha_0 .. alpha_{K-1}, beta_1 .. beta_{K-1})
Recursion recursion_of(const VectorXd& theta) {
  const Index steps = theta.size() / 2;
  Recursion recursion = Recursion::neumann(static_cast<int>(steps));
  recursion.initial = theta(0);
  for (Index k = 0; k < steps; ++k) {
    recursion.alpha[static_cast<std::size_t>(k)] = theta(1 + k);
    if (k > 0) recursion.beta[static_cast<std::size_t>(k)] = theta(steps + k);
  }
  return recursion;
}

/// d p / d theta. Every single parameter enters p linearly, so a difference over any step is exact.
MatrixXd jacobian(const VectorXd& theta, const VectorXd& polynomial) {
  MatrixXd J(polynomial.size(), theta.size());
  for (Index i = 0; i < theta.size(); ++i) {
    VectorXd moved = theta;
    moved(i) += 1.0;
    J.col(i) = recursion_of(moved).polynomial() - polynomial;
  }
  return J;
}

/// Levenberg-Marquardt on the quadratic loss of p(theta).
double descend(const QuadraticLoss& loss, VectorXd& theta) {
  constexpr int most = 400;
  const Index size = theta.size() / 2 + 1;
  const MatrixXd curvature = loss.curvature.topLeftCorner(size, size);
  double damping = 1e-2;
  VectorXd polynomial = recursion_of(theta).polynomial();
  double value = loss.value(polynomial);
  for (int iteration = 0; iteration < most && damping < 1e12; ++iteration) {
    const MatrixXd J = jacobian(theta, polynomial);
    const VectorXd gradient = J.transpose() * loss.gradient(polynomial);
    MatrixXd normal = J.transpose() * curvature * J;
    normal.diagonal() += damping * normal.diagonal();
    normal.diagonal().array() += 1e-14 * normal.diagonal().maxCoeff();
    const VectorXd moved = theta - normal.ldlt().solve(gradient);
    const VectorXd other = recursion_of(moved).polynomial();
    const double now = loss.value(other);
    if (!(now < value)) {
      damping *= 8.0;
      continue;
    }
    const bool arrived = value - now < 4.0 * std::numeric_limits<double>::epsilon() * std::abs(value);
    theta = moved;
    polynomial = other;
    value = now;
    damping *= 0.2;
    if (arrived) break;
  }
  return value;
}

/// The stationary iteration that is best on eigenvalues of [low, high].
VectorXd stationary(Index steps, double low, double high) {
  const double sum = std::sqrt(high) + std::sqrt(low);
  const double ratio = (std::sqrt(high) - std::sqrt(low)) / sum;
  VectorXd theta = VectorXd::Constant(2 * steps, ratio * ratio);
  theta(0) = 2.0 / (high + low);
  theta.segment(1, steps).setConstant(4.0 / (sum * sum));
  // alpha = initial is a saddle: both enter p alike
  theta(1) *= 1.5;
  return theta;
}

}  // namespace

VectorXd times_argument(const VectorXd& polynomial) {
  // x P_k(2x - 1) = (((k + 1) P_{k+1} + k P_{k-1}) / (2k + 1) + P_k) / 2
  VectorXd result = VectorXd::Zero(polynomial.size() + 1);
  for (Index k = 0; k < polynomial.size(); ++k) {
    const auto degree = static_cast<double>(k);
    const double half = 0.5 * polynomial(k);
    result(k) += half;
    result(k + 1) += half * (degree + 1.0) / (2.0 * degree + 1.0);
    if (k > 0) result(k - 1) += half * degree / (2.0 * degree + 1.0);
  }
  return result;
}

QuadraticLoss QuadraticLoss::zero(Index size) { return {0.0, VectorXd::Zero(size), MatrixXd::Zero(size, size)}; }

double QuadraticLoss::value(const VectorXd& c) const {
  const Index size = c.size();
  return constant - slope.head(size).dot(c) + 0.5 * c.dot(curvature.topLeftCorner(size, size) * c);
}

VectorXd QuadraticLoss::gradient(const VectorXd& c) const {
  return curvature.topLeftCorner(c.size(), c.size()) * c - slope.head(c.size());
}

Recursion Recursion::neumann(int steps) {
  const auto count = static_cast<std::size_t>(steps);
  return {1.0, std::vector<double>(count, 1.0), std::vector<double>(count, 0.0)};
}

VectorXd Recursion::polynomial() const {
  const auto steps = static_cast<Index>(alpha.size());
  VectorXd before = VectorXd::Zero(steps + 1), now = VectorXd::Zero(steps + 1);
  now(0) = initial;
  for (Index k = 0; k < steps; ++k) {
    const auto at = static_cast<std::size_t>(k);
    VectorXd next = now;
    // z_{k+1} = z_k - alpha_k (A z_k - b) + beta_k (z_k - z_{k-1}) (theory: eq:preconditioned-recursion)
    next.head(k + 2) -= alpha[at] * times_argument(now.head(k + 1));
    next(0) += alpha[at];
    if (k > 0) next += beta[at] * (now - before);
    before = now;
    now = next;
  }
  return now;
}

VectorXd least_squares(const QuadraticLoss& loss, int count) {
  return loss.curvature.topLeftCorner(count, count).ldlt().solve(loss.slope.head(count));
}

Recursion trained_recursion(const QuadraticLoss& loss, int steps) {
  if (steps == 0) return {least_squares(loss, 1)(0), {}, {}};
  VectorXd best;
  double least = std::numeric_limits<double>::infinity();
  for (const double high : {0.4, 0.7, 1.0}) {
    for (const double ratio : {0.02, 0.1, 0.4}) {
      VectorXd theta = stationary(steps, ratio * high, high);
      const double value = descend(loss, theta);
      if (best.size() == 0 || value < least) {  // the first one whatever it is: no start may be finite
        least = value;
        best = theta;
      }
    }
  }
  return recursion_of(best);
}

}  // namespace iclflow
