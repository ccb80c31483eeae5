#include "iclflow/reduction/projection.hpp"

#include <cmath>
#include <limits>

namespace iclflow {

namespace {

/// a^2 - b^2 of the columns of two factors. Rounding is cut off: balanced weights must come back balanced, because any
/// imbalance, however small, lets a product change its sign in the end.
Eigen::RowVectorXd imbalance(const Matrix& a, const Matrix& b) {
  const Eigen::RowVectorXd first = a.colwise().squaredNorm();
  const Eigen::RowVectorXd second = b.colwise().squaredNorm();
  const double rounding = 4.0 * static_cast<double>(a.rows()) * std::numeric_limits<double>::epsilon();
  const Eigen::RowVectorXd difference = first - second;
  return (difference.array().abs() > rounding * (first + second).array()).select(difference, 0.0);
}

double off_diagonal_power(const Matrix& square) { return square.squaredNorm() - square.diagonal().squaredNorm(); }

}  // namespace

Projection project(const WeightLayout& layout, const Rotations& basis, const Eigen::VectorXd& weights) {
  const ActingWeights blocks = acting(layout, weights);
  const int d = layout.dimension;
  Projection result;
  result.mu.resize(layout.heads, layout.tasks);
  result.omega.resize(layout.heads, d);
  double key_query = 0.0;
  double cross = 0.0;
  double output_value = 0.0;
  double value_x = 0.0;
  for (int h = 0; h < layout.heads; ++h) {
    // omega = diag(Phi^T M_X Phi),  mu = diag(Psi^T U_Y Psi)                   theory: eq:projection
    const Matrix& m = blocks.key_query[static_cast<std::size_t>(h)];
    const Matrix& a = blocks.output_value[static_cast<std::size_t>(h)];
    const Matrix xx = basis.phi.transpose() * m.topRows(d) * basis.phi;
    const Matrix uy = basis.psi.transpose() * a.rightCols(layout.tasks) * basis.psi;
    result.omega.row(h) = xx.diagonal();
    result.mu.row(h) = uy.diagonal();
    key_query += off_diagonal_power(xx);
    output_value += off_diagonal_power(uy);
    cross += m.bottomRows(layout.tasks).squaredNorm();  // norms do not see the rotation
    value_x += a.leftCols(d).squaredNorm();
  }
  result.leakage = {std::sqrt(std::max(0.0, key_query)), std::sqrt(cross), std::sqrt(std::max(0.0, output_value)),
                    std::sqrt(value_x)};
  return result;
}

InitialState project_start(const Problem& problem, const WeightLayout& layout, const Rotations& basis,
                           const Eigen::VectorXd& weights) {
  const Projection at = project(layout, basis, weights);
  InitialState start = balanced_start(problem, at.mu, at.omega);
  if (layout.parametrisation == Parametrisation::merged) return start;
  for (int h = 0; h < layout.heads; ++h) {
    const HeadView<const double> from = head(layout, weights, h);
    // C = a^2 - b^2 of each product is the diagonal of K_X^T K_X - Q_X^T Q_X and of O O^T - V_Y V_Y^T in the bases.
    const Matrix key = from.k.leftCols(layout.dimension) * basis.phi;
    const Matrix query = from.q.leftCols(layout.dimension) * basis.phi;
    const Matrix output = from.o.transpose() * basis.psi;
    const Matrix value = from.v.rightCols(layout.tasks) * basis.psi;
    start.imbalance_omega.row(h) = imbalance(key, query);
    start.imbalance_mu.row(h) = imbalance(output, value);
  }
  return start;
}

}  // namespace iclflow
