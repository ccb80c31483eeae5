#include "iclflow/spectral/closed_forms.hpp"

#include <algorithm>
#include <boost/math/special_functions/sinhc.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace iclflow {

namespace {

constexpr double e = std::numbers::e;

double dimension(const Problem& problem, int task) { return problem.task_dimensions[static_cast<std::size_t>(task)]; }

/// phi_i d_i / L, the noise ratio of a task: x of a coefficient kappa is kappa times this.
double noise_ratio(const Problem& problem, int task) {
  return problem.noise_factor(task) * dimension(problem, task) / problem.context_length;
}

/// ell of all tasks with x_i = kappa phi_i d_i / L.
double loss_at_coefficient(const Problem& problem, double kappa) {
  double loss = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) {
    // ell_i = (P_i/2) x_i/(1 + x_i)                                       theory: eq:task-loss
    const double x = kappa * noise_ratio(problem, i);
    loss += 0.5 * problem.signal_power(i) * x / (1.0 + x);
  }
  return loss;
}

/// kappa at which loss_at_coefficient, which rises with kappa, equals loss.
double coefficient_of_loss(const Problem& problem, double loss) {
  const auto excess = [&](double kappa) { return loss_at_coefficient(problem, kappa) - loss; };
  double high = 1.0;
  while (excess(high) < 0.0) high *= 2.0;
  std::uintmax_t iterations = 200;
  const auto [a, b] =
      boost::math::tools::toms748_solve(excess, 0.0, high, boost::math::tools::eps_tolerance<double>(52), iterations);
  return 0.5 * (a + b);
}

/// Shares u_i = d_i omega_i^2 >= 0 of a single head, sum 1, that minimise sum_i (P_i/2) e c_i/(u_i + e c_i),
/// c_i = phi_i d_i / L: a convex problem solved by its water level.
std::vector<double> best_shares(const Problem& problem) {
  const int tasks = problem.tasks();
  std::vector<int> order(static_cast<std::size_t>(tasks));
  std::iota(order.begin(), order.end(), 0);
  // Task i is served once the level exceeds sqrt(e c_i / P_i).
  const auto cost = [&](int i) { return e * noise_ratio(problem, i); };
  const auto threshold = [&](int i) { return std::sqrt(cost(i) / problem.signal_power(i)); };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return threshold(a) < threshold(b); });
  double costs = 1.0;
  double weights = 0.0;
  double level = 0.0;
  for (const int i : order) {
    if (weights > 0.0 && level <= threshold(i)) break;
    // level = (1 + sum e c_i) / sum sqrt(P_i e c_i) over the served tasks   theory: eq:water-level
    costs += cost(i);
    weights += std::sqrt(problem.signal_power(i) * cost(i));
    level = costs / weights;
  }
  std::vector<double> shares;
  for (int i = 0; i < tasks; ++i) {
    // u_i = max(0, level sqrt(P_i e c_i) - e c_i)                         theory: eq:single-head-shares
    shares.push_back(std::max(0.0, level * std::sqrt(problem.signal_power(i) * cost(i)) - cost(i)));
  }
  return shares;
}

void require_one_task(const Problem& problem) {
  if (problem.tasks() != 1) throw std::invalid_argument("a pair of opposite heads is defined for one task");
}

}  // namespace

bool equal_tasks(const Problem& problem) {
  const auto differs = [](const auto& list) {
    return std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>());
  };
  return differs(problem.task_dimensions) == problem.task_dimensions.end() &&
         differs(problem.signal_variance) == problem.signal_variance.end();
}

std::optional<double> loss_ratio(const Problem& problem, double loss) {
  double ceiling = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) ceiling += 0.5 * problem.signal_power(i);
  // x = ell / (sum_i P_i / 2 - ell)                                       theory: eq:loss-ratio
  if (!(loss > 0.0 && loss < ceiling)) return std::nullopt;
  return loss / (ceiling - loss);
}

std::optional<double> loss_coefficient(const Problem& problem, double loss) {
  const auto x = loss_ratio(problem, loss);
  if (!x || !equal_tasks(problem)) return std::nullopt;
  return *x / noise_ratio(problem, 0);
}

std::optional<DedicatedLimit> dedicated_limit(const Problem& problem) {
  if (problem.heads < problem.tasks()) return std::nullopt;
  DedicatedLimit limit{loss_at_coefficient(problem, e), {}, {}};
  for (int i = 0; i < problem.tasks(); ++i) {
    // omega = d_i^{-1/2}, mu = sqrt(d_i)/(1 + x_i), x_i = e phi_i d_i/L   theory: eq:dedicated-limit
    const double root = std::sqrt(dimension(problem, i));
    limit.mu.push_back(root / (1.0 + e * noise_ratio(problem, i)));
    limit.omega.push_back(1.0 / root);
  }
  return limit;
}

InitialState dedicated_start(const Problem& problem) {
  const auto limit = dedicated_limit(problem);
  if (!limit) throw std::invalid_argument("dedicated heads need a head per task");
  Matrix mu = Matrix::Zero(problem.heads, problem.tasks());
  Matrix omega = Matrix::Zero(problem.heads, problem.tasks());
  for (int i = 0; i < problem.tasks(); ++i) {
    mu(i, i) = limit->mu[static_cast<std::size_t>(i)];
    omega(i, i) = limit->omega[static_cast<std::size_t>(i)];
  }
  return balanced_start(problem, mu, omega);
}

SingleHead best_single_head(const Problem& problem) {
  const bool equal = equal_tasks(problem);
  // kappa = e I for equal tasks                                           theory: eq:single-head
  SingleHead head{0.0, equal ? e * problem.tasks() : 0.0, {}, {}};
  const std::vector<double> shares = best_shares(problem);
  for (int i = 0; i < problem.tasks(); ++i) {
    const double share = shares[static_cast<std::size_t>(i)];
    const double cost = e * noise_ratio(problem, i);
    const double omega = std::sqrt(share / dimension(problem, i));
    head.loss += 0.5 * problem.signal_power(i) * cost / (share + cost);
    head.omega.push_back(omega);
    // mu_i = (1/omega_i) u_i/(u_i + e c_i)                                theory: eq:single-head-mu
    head.mu.push_back(share > 0.0 ? share / ((share + cost) * omega) : 0.0);
  }
  if (!equal) head.coefficient = coefficient_of_loss(problem, head.loss);
  return head;
}

std::optional<double> best_coefficient(const Problem& problem) {
  if (!equal_tasks(problem)) return std::nullopt;
  // kappa = e I (H = 1), I/(H-1) (2 <= H <= I+1), 1 (beyond)              theory: eq:best-coefficient
  if (problem.heads == 1) return e * problem.tasks();
  return std::max(1.0, static_cast<double>(problem.tasks()) / (problem.heads - 1));
}

std::optional<HeadPair> opposite_pair(const Problem& problem) {
  if (problem.tasks() != 1 || problem.heads < 2) return std::nullopt;
  return HeadPair{loss_at_coefficient(problem, 1.0), 1.0};
}

double opposite_pair_loss(const Problem& problem, double omega) {
  require_one_task(problem);
  // ell = (P/2) (1 - w^2/(w^2 + phi sinh(d w^2)/L)), written with sinh(z)/z so that w -> 0 is harmless
  //                                                                       theory: eq:opposite-pair
  const double z = dimension(problem, 0) * omega * omega;
  return loss_at_coefficient(problem, boost::math::sinhc_pi(z));
}

double ridge_loss(const Problem& problem) {
  double loss = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) {
    // M = (1/2) { b + sqrt(b^2 + 4 s^2) }, b = 1 - L/d_i - s^2, s^2 = sigma^2/P_i; ell_i = (P_i/2) M
    //                                                                     theory: eq:ridge
    const double power = problem.signal_power(i);
    const double noise = problem.noise_variance / power;
    const double b = 1.0 - problem.context_length / dimension(problem, i) - noise;
    const double root = std::sqrt(b * b + 4.0 * noise);
    const double error = b >= 0.0 ? 0.5 * (b + root) : 2.0 * noise / (root - b);  // no cancellation
    loss += 0.5 * power * error;
  }
  return loss;
}

double gradient_step_loss(const Problem& problem) {
  double loss = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) {
    // eta_i = 1/(1 + x), x = (d_i phi_i + 1)/L; ell_i = (P_i/2) (1 - eta_i) theory: eq:gradient-step
    const double x = (dimension(problem, i) * problem.noise_factor(i) + 1.0) / problem.context_length;
    loss += 0.5 * problem.signal_power(i) * x / (1.0 + x);
  }
  return loss;
}

}  // namespace iclflow
