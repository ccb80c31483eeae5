#include "iclflow/reduction/sampled_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "iclflow/attention/thread_team.hpp"
#include "sampled_contexts.hpp"
#include "sampled_worker.hpp"

namespace iclflow {

/// Value of the loss at a state that was asked for lately.
struct SampledLoss::Estimate {
  Eigen::VectorXd state;
  Eigen::VectorXd by_task;
  double standard_error = 0.0;
};

struct SampledLoss::Parts {
  int heads, tasks, size, contexts;
  Eigen::VectorXd noise_weight;  ///< a_i tau_i + sigma^2
  ThreadTeam team;
  Contexts set;
  std::vector<Worker> workers;
  std::vector<SampledSums> groups;
  SampledSums total;
  /// Events look at the loss of the same few states of a step one after another.
  std::array<Estimate, 8> recent;
  std::size_t oldest = 0;

  Parts(const Problem& problem, const Coordinates& coordinates, const SampledOptions& options)
      : heads(problem.heads),
        tasks(problem.tasks()),
        size(coordinates.size()),
        contexts(options.contexts),
        noise_weight(problem.tasks()),
        team(options.threads),
        set(problem, coordinates, options),
        total(heads, tasks, size) {
    for (std::size_t k = 0; k < team.size(); ++k) workers.emplace_back(problem, coordinates);
    groups.assign(Contexts::groups, SampledSums(heads, tasks, size));
    for (int i = 0; i < tasks; ++i) {
      const double d = problem.task_dimensions[static_cast<std::size_t>(i)];
      const auto columns = static_cast<double>(std::count(coordinates.task.begin(), coordinates.task.end(), i));
      noise_weight(i) = problem.signal_power(i) / d * (d - columns) + problem.noise_variance;
    }
  }

  using Pass = void (Worker::*)(const Contexts&, int, SampledSums&);
  /// Runs a pass over all contexts, the groups shared among threads, and adds the groups in order.
  void run(Pass pass, const double* state, const double* direction) {
    team.run(groups.size(), [&](std::size_t group, std::size_t thread) {
      Worker& worker = workers[thread];
      SampledSums& sums = groups[group];
      sums.clear();
      worker.look_at(state, direction);
      const int number = static_cast<int>(group);
      for (int c = set.begin(number); c < set.begin(number + 1); ++c) (worker.*pass)(set, c, sums);
    });
    total.clear();
    for (const SampledSums& group : groups) total.add(group);
  }

  /// bias_i + (1/2) (a_i tau_i + sigma^2) mu_i^T C mu_i from sums over `count` contexts.
  [[nodiscard]] Eigen::VectorXd by_task(const SampledSums& sums, const double* state, int count) const {
    const Eigen::Map<const Matrix> mu(state, heads, tasks);
    const Eigen::VectorXd variance = mu.cwiseProduct(sums.overlap * mu).colwise().sum().transpose();
    return (sums.bias + 0.5 * noise_weight.cwiseProduct(variance)) / static_cast<double>(count);
  }
};

SampledLoss::SampledLoss(const Problem& problem, const Coordinates& coordinates, const SampledOptions& options) {
  if (options.contexts < smallest) {
    throw std::invalid_argument(
        fmt::format("closure \"sampled\" needs at least {} contexts, not {}", smallest, options.contexts));
  }
  parts_ = std::make_unique<Parts>(problem, coordinates, options);
}

SampledLoss::~SampledLoss() = default;

const SampledLoss::Estimate& SampledLoss::estimate(const Eigen::VectorXd& state) const {
  Parts& own = *parts_;
  for (const Estimate& known : own.recent) {
    if (known.state.size() == state.size() && (known.state.array() == state.array()).all()) return known;
  }
  own.run(&Worker::value, state.data(), nullptr);
  Estimate& fresh = own.recent[own.oldest];
  own.oldest = (own.oldest + 1) % own.recent.size();
  fresh.state = state;
  fresh.by_task = own.by_task(own.total, state.data(), own.contexts);
  // Independent groups of n_g contexts with mean l_g: variance of the mean = G/(G-1) sum_g (n_g/n)^2 (l_g - l)^2.
  const double mean = fresh.by_task.sum();
  double variance = 0.0;
  for (std::size_t g = 0; g < own.groups.size(); ++g) {
    const int number = static_cast<int>(g);
    const int count = own.set.begin(number + 1) - own.set.begin(number);
    const double share = static_cast<double>(count) / own.contexts;
    const double gap = own.by_task(own.groups[g], state.data(), count).sum() - mean;
    variance += share * share * gap * gap;
  }
  const auto groups = static_cast<double>(own.groups.size());
  fresh.standard_error = std::sqrt(variance * groups / (groups - 1.0));
  return fresh;
}

double SampledLoss::value(const Eigen::VectorXd& state) const { return estimate(state).by_task.sum(); }

Eigen::VectorXd SampledLoss::by_task(const Eigen::VectorXd& state) const { return estimate(state).by_task; }

std::optional<double> SampledLoss::standard_error(const Eigen::VectorXd& state) const {
  return estimate(state).standard_error;
}

void SampledLoss::gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const {
  Parts& own = *parts_;
  own.run(&Worker::gradient, state.data(), nullptr);
  gradient = own.total.slope;
  // d/d mu_hi of the rest = (a_i tau_i + sigma^2) (C mu_i)_h
  const Eigen::Map<const Matrix> mu(state.data(), own.heads, own.tasks);
  Eigen::Map<Matrix> slope(gradient.data(), own.heads, own.tasks);
  slope += own.total.overlap * mu * own.noise_weight.asDiagonal();
  gradient /= own.contexts;
}

void SampledLoss::hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                                 Eigen::VectorXd& product) const {
  Parts& own = *parts_;
  own.run(&Worker::curvature, state.data(), direction.data());
  product = own.total.change;
  const Eigen::Map<const Matrix> mu(state.data(), own.heads, own.tasks);
  const Eigen::Map<const Matrix> change(direction.data(), own.heads, own.tasks);
  Eigen::Map<Matrix> slope(product.data(), own.heads, own.tasks);
  slope += (own.total.overlap * change + own.total.overlap_change * mu) * own.noise_weight.asDiagonal();
  product /= own.contexts;
}

SampledLoss::Draw SampledLoss::draw(int context) const {
  const Parts& own = *parts_;
  Draw draw{Eigen::Map<const Eigen::VectorXd>(own.set.chi(context), own.size),
            Matrix(own.size, static_cast<Eigen::Index>(own.set.stride()))};
  own.set.coordinates(context, draw.coordinates.data());
  return draw;
}

}  // namespace iclflow
