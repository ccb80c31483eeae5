#include "iclflow/spectral/stability.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

double response_key_curvature(const Problem& problem, int task, double mu, double omega) {
  // lambda = s_w mu^2 |omega| P^2 (phi^2 + 2/d)                          theory: eq:response-key-curvature
  const double power = problem.signal_power(task);
  const double phi = problem.noise_factor(task);
  const double d = problem.task_dimensions[static_cast<std::size_t>(task)];
  return problem.score_factor() * mu * mu * std::abs(omega) * power * power * (phi * phi + 2.0 / d);
}

std::optional<double> largest_learning_rate(const Problem& problem) {
  const auto limit = dedicated_limit(problem);
  if (!limit || problem.parametrisation == Parametrisation::merged) return std::nullopt;
  double largest = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) {
    const auto task = static_cast<std::size_t>(i);
    largest = std::max(largest, response_key_curvature(problem, i, limit->mu[task], limit->omega[task]));
  }
  return 2.0 / largest;
}

double escape_time(double growth_rate, double imbalance, double mu, double level) {
  // t = (1/2g) [asinh(2 mu/|C|) + asinh(2 level/|C|)]                    theory: eq:escape-time
  const double c = std::abs(imbalance);
  return (std::asinh(2.0 * mu / c) + std::asinh(2.0 * level / c)) / (2.0 * growth_rate);
}

}  // namespace iclflow
