#include "iclflow/problem/problem.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

namespace iclflow {

int Problem::dimension() const { return std::accumulate(task_dimensions.begin(), task_dimensions.end(), 0); }

int Problem::block_begin(int task) const {
  return std::accumulate(task_dimensions.begin(), task_dimensions.begin() + task, 0);
}

std::vector<int> Problem::task_of_coordinate() const {
  std::vector<int> task;
  for (int i = 0; i < tasks(); ++i)
    task.insert(task.end(), static_cast<std::size_t>(task_dimensions[static_cast<std::size_t>(i)]), i);
  return task;
}

double Problem::response_factor() const {
  return response_scale == ResponseScale::unit ? 1.0 : 1.0 / std::sqrt(static_cast<double>(dimension()));
}

double Problem::score_factor() const {
  const bool scaled = parametrisation == Parametrisation::split && score_scale == ScoreScale::inverse_sqrt_embedding;
  return scaled ? 1.0 / std::sqrt(static_cast<double>(embedding())) : 1.0;
}

double Problem::signal_power(int task) const {
  // P_i = s_y^2 lambda_i d_i                                              theory: eq:signal-power
  const auto i = static_cast<std::size_t>(task);
  return response_factor() * response_factor() * signal_variance[i] * task_dimensions[i];
}

double Problem::noise_factor(int task) const {
  // phi_i = 1 + sigma^2 / P_i                                             theory: eq:noise-factor
  return 1.0 + noise_variance / signal_power(task);
}

namespace {

// Beyond these no machine of today holds the weights; refusing here means nothing tries to allocate them.
constexpr int largest_count = 4096;
constexpr int largest_dimension = 65536;
constexpr int largest_context = 16'777'216;
constexpr double largest_parameter_count = 2.0e9;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument(what);
}

}  // namespace

void validate(const Problem& p) {
  require(p.heads >= 1 && p.heads <= largest_count,
          fmt::format("heads = {} is not allowed: 1 to {}", p.heads, largest_count));
  require(!p.task_dimensions.empty() && p.task_dimensions.size() <= largest_count,
          fmt::format("task_dimensions has {} entries: 1 to {} allowed", p.task_dimensions.size(), largest_count));
  double total = 0.0;
  for (const int size : p.task_dimensions) {
    require(size >= 1 && size <= largest_dimension,
            fmt::format("task_dimensions holds {}: every entry must be 1 to {}", size, largest_dimension));
    total += size;
  }
  require(total <= largest_dimension,
          fmt::format("task_dimensions sum to {}: at most {} allowed", total, largest_dimension));
  require(p.heads * total * total <= largest_parameter_count,
          fmt::format("heads * (sum of task_dimensions)^2 = {} weights: at most {} allowed", p.heads * total * total,
                      largest_parameter_count));
  require(p.context_length >= 1 && p.context_length <= largest_context,
          fmt::format("context_length = {} is not allowed: 1 to {}", p.context_length, largest_context));
  require(std::isfinite(p.noise_variance) && p.noise_variance >= 0.0,
          fmt::format("noise_variance = {} is not allowed: a finite number of at least 0", p.noise_variance));
  require(p.signal_variance.size() == p.task_dimensions.size(),
          fmt::format("signal_variance has {} entries: one number, or one for each of the {} tasks",
                      p.signal_variance.size(), p.task_dimensions.size()));
  for (const double lambda : p.signal_variance) {
    require(std::isfinite(lambda) && lambda > 0.0,
            fmt::format("signal_variance holds {}: finite numbers above 0 allowed", lambda));
  }
  require(p.parametrisation == Parametrisation::split || p.score_scale == ScoreScale::unit,
          "score_scale belongs to the split parametrisation: leave it out or set \"unit\" when merged");
}

}  // namespace iclflow
