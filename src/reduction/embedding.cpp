#include "iclflow/reduction/embedding.hpp"

#include <cmath>

namespace iclflow {

namespace {

/// Factors of a product x = scale a b with a^2 - b^2 = imbalance; a > 0 unless both vanish, the sign of x sits in b.
struct Factors {
  double a, b;
};

Factors factorise(double x, double scale, double imbalance) {
  // a^2 - b^2 = C, a b = x / s  =>  a^2 + b^2 = sqrt(C^2 + 4 (x/s)^2)          theory: eq:embedding
  const double product = x / scale;
  const double sum = std::hypot(imbalance, 2.0 * product);
  // The larger square by addition, the smaller from the product: no cancellation.
  if (imbalance >= 0.0) {
    const double a = std::sqrt(0.5 * (sum + imbalance));
    return {a, a > 0.0 ? product / a : 0.0};
  }
  const double b = std::sqrt(0.5 * (sum - imbalance));
  return {std::abs(product) / b, std::copysign(b, product)};
}

}  // namespace

Eigen::VectorXd embed(const Problem& problem, const Rotations& basis, const InitialState& start) {
  const WeightLayout layout = WeightLayout::of(problem);
  const int d = layout.dimension;
  const int tasks = layout.tasks;
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(layout.size());
  for (int h = 0; h < layout.heads; ++h) {
    HeadView<double> to = head(layout, weights, h);
    if (layout.parametrisation == Parametrisation::merged) {
      to.w = basis.phi * start.omega.row(h).asDiagonal() * basis.phi.transpose();
      to.u = basis.psi * start.mu.row(h).asDiagonal() * basis.psi.transpose();
      continue;
    }
    Eigen::VectorXd key(d);
    Eigen::VectorXd query(d);
    for (int j = 0; j < d; ++j) {
      const Factors factors = factorise(start.omega(h, j), layout.score_factor, start.imbalance_omega(h, j));
      key(j) = factors.a;
      query(j) = factors.b;
    }
    Eigen::VectorXd output(tasks);
    Eigen::VectorXd value(tasks);
    for (int i = 0; i < tasks; ++i) {
      // O carries the sign, so V is the factor kept positive: (V, O) has imbalance -C.
      const Factors factors = factorise(start.mu(h, i), 1.0, -start.imbalance_mu(h, i));
      value(i) = factors.a;
      output(i) = factors.b;
    }
    to.k.topLeftCorner(d, d) = key.asDiagonal() * basis.phi.transpose();
    to.q.topLeftCorner(d, d) = query.asDiagonal() * basis.phi.transpose();
    to.k.bottomRightCorner(tasks, tasks) = start.inert * basis.psi.transpose();
    to.q.bottomRightCorner(tasks, tasks) = start.inert * basis.psi.transpose();
    to.o.rightCols(tasks) = basis.psi * output.asDiagonal();
    to.v.bottomRightCorner(tasks, tasks) = value.asDiagonal() * basis.psi.transpose();
  }
  return weights;
}

}  // namespace iclflow
