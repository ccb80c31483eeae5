#include "iclflow/spectral/emergence_order.hpp"

#include <cmath>

namespace iclflow {

namespace {

double logarithmic_mean(double a, double b) {
  const double ratio = std::log(a / b);
  // (a - b) / ln(a / b) = sqrt(ab) sinh(ratio/2) / (ratio/2), regular where a = b
  const double half = 0.5 * ratio;
  const double growth = std::abs(half) < 1e-4 ? 1.0 + half * half / 6.0 : std::sinh(half) / half;
  return std::sqrt(a) * std::sqrt(b) * growth;
}

}  // namespace

std::optional<Matrix> emergence_order(const Problem& problem, const InitialState& start) {
  const bool merged = problem.parametrisation == Parametrisation::merged;
  if (!merged && (start.imbalance_mu.any() || start.imbalance_omega.any())) return std::nullopt;
  const Matrix omega = block_means(problem, start.omega);
  Matrix order = Matrix::Zero(problem.heads, problem.tasks());
  for (int i = 0; i < problem.tasks(); ++i) {
    const double d = problem.task_dimensions[static_cast<std::size_t>(i)];
    for (int h = 0; h < problem.heads; ++h) {
      const double mu = start.mu(h, i);
      if (merged) {
        order(h, i) = 0.5 * std::abs(mu + std::sqrt(d) * omega(h, i));
      } else if (mu * omega(h, i) > 0.0) {
        // 1/t* ~ (mu - Omega) / ln(mu / Omega)                            theory: eq:emergence-order
        order(h, i) = logarithmic_mean(std::abs(mu), d * std::abs(omega(h, i)) / problem.score_factor());
      }
    }
  }
  return order;
}

}  // namespace iclflow
