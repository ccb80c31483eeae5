#include "iclflow/spectral/superposition.hpp"

#include <stdexcept>

#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

/// The tasks of one head as a problem of their own: same powers, dimensions, noise and contexts.
Problem tasks_alone(const Problem& problem, const std::vector<int>& tasks) {
  Problem own = problem;
  own.heads = 1;
  own.task_dimensions.clear();
  own.signal_variance.clear();
  own.response_scale = ResponseScale::unit;
  for (const int i : tasks) {
    const int d = problem.task_dimensions[static_cast<std::size_t>(i)];
    own.task_dimensions.push_back(d);
    own.signal_variance.push_back(problem.signal_power(i) / d);
  }
  return own;
}

}  // namespace

Superposition superposed_limit(const Problem& problem, const std::vector<int>& head) {
  const auto count = static_cast<std::size_t>(problem.tasks());
  if (head.size() != count) throw std::invalid_argument("one head per task expected");
  std::vector<std::vector<int>> tasks(static_cast<std::size_t>(problem.heads));
  for (std::size_t i = 0; i < count; ++i) {
    if (head[i] < 0 || head[i] >= problem.heads) throw std::invalid_argument("head out of range");
    tasks[static_cast<std::size_t>(head[i])].push_back(static_cast<int>(i));
  }
  Superposition limit{0.0, std::vector<double>(count), std::vector<double>(count)};
  for (const std::vector<int>& own : tasks) {
    if (own.empty()) continue;
    // ell* = sum over heads of the best single head on the head's tasks   theory: eq:superposition
    const SingleHead best = best_single_head(tasks_alone(problem, own));
    limit.loss += best.loss;
    for (std::size_t k = 0; k < own.size(); ++k) {
      limit.mu[static_cast<std::size_t>(own[k])] = best.mu[k];
      limit.omega[static_cast<std::size_t>(own[k])] = best.omega[k];
    }
  }
  return limit;
}

}  // namespace iclflow
