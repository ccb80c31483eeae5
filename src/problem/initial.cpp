#include "iclflow/problem/initial.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/random/stream.hpp"

namespace iclflow {

InitialState balanced_start(const Problem& problem, const Matrix& mu, const Matrix& omega) {
  InitialState start;
  start.mu = mu;
  start.omega = omega.cols() == problem.dimension() ? omega : expand_blocks(problem, omega);
  start.imbalance_mu = Matrix::Zero(problem.heads, problem.tasks());
  start.imbalance_omega = Matrix::Zero(problem.heads, problem.dimension());
  return start;
}

InitialState aligned_start(const Problem& problem, double scale, double own_ratio) {
  Matrix mu = Matrix::Constant(problem.heads, problem.tasks(), scale);
  for (int i = 0; i < std::min(problem.heads, problem.tasks()); ++i) mu(i, i) = own_ratio * scale;
  return balanced_start(problem, mu, Matrix::Constant(problem.heads, problem.tasks(), scale));
}

InitialState authors_start(const Problem& problem) {
  // Each factor is L^{-3/4}; mu = o v, omega = s_w k q; own-task factors are twice as large.
  const double factor = std::pow(static_cast<double>(problem.context_length), -0.75);
  Matrix mu = Matrix::Constant(problem.heads, problem.tasks(), factor * factor);
  for (int i = 0; i < std::min(problem.heads, problem.tasks()); ++i) mu(i, i) = 4.0 * factor * factor;
  InitialState start = balanced_start(
      problem, mu, Matrix::Constant(problem.heads, problem.tasks(), problem.score_factor() * factor * factor));
  start.inert = problem.parametrisation == Parametrisation::split ? factor : 0.0;
  return start;
}

InitialState random_start(const Problem& problem, double scale, std::uint64_t seed, bool positive, bool equal_omega) {
  NormalStream normal({seed, Stream::initial, 0, 0});
  Matrix mu(problem.heads, problem.tasks());
  Matrix omega(problem.heads, problem.tasks());
  for (double& value : mu.reshaped()) value = scale * normal();
  for (double& value : omega.reshaped()) value = scale * normal();
  if (positive) {
    mu = mu.cwiseAbs().eval();
    omega = omega.cwiseAbs().eval();
  }
  if (equal_omega) omega.setConstant(scale);
  return balanced_start(problem, mu, omega);
}

}  // namespace iclflow
