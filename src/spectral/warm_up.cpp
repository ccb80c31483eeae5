#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <numbers>
#include <utility>

#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/population_loss.hpp"

// When a task emerges (theory/06-phases-allocation.md). To leading order in the damping phi_i / L the heads of a task
// run along a curve known in closed form; the time along it is a quadrature of the exact speed of the winner's product.

namespace iclflow {

namespace {

/// All heads' values on one task at one point of the curve, and d(mu omega)/du of the winner along it.
struct CurvePoint {
  Eigen::VectorXd mu;
  Eigen::VectorXd omega;
  double winner_slope = 0.0;
  bool valid = true;  ///< false where the leading order has broken down
};

struct OneTask {
  Problem problem;  ///< one task of the original's size, power, noise and context, all heads
  double score_factor;
  bool alone;  ///< the only task of the original problem
  int winner;
  Eigen::VectorXd mu;     ///< initial, per head
  Eigen::VectorXd omega;  ///< initial, per head
  std::unique_ptr<PopulationLoss> loss;

  [[nodiscard]] double d() const { return problem.task_dimensions[0]; }
  [[nodiscard]] double power() const { return problem.signal_power(0); }
  [[nodiscard]] double noise_ratio() const { return problem.noise_factor(0) * d() / problem.context_length; }
  [[nodiscard]] bool merged() const { return problem.parametrisation == Parametrisation::merged; }
  [[nodiscard]] double loss_at(const CurvePoint& p) const { return loss->value(state(p)); }
  [[nodiscard]] static Eigen::VectorXd state(const CurvePoint& p) {
    Eigen::VectorXd x(p.mu.size() + p.omega.size());
    x << p.mu, p.omega;
    return x;
  }
};

using Curve = std::function<CurvePoint(double u)>;

/// Split, u = log of the winner's Omega = d omega / s. Heads share one clock k tau, tau' = r, k = 2 P s / d.
CurvePoint split_point(const OneTask& task, double u) {
  const double scale = task.d() / task.score_factor;  // omega -> Omega
  const double damping = task.noise_ratio() / task.score_factor;
  const auto w = static_cast<Eigen::Index>(task.winner);
  const double total = task.mu.sum();
  CurvePoint p{task.mu, task.omega, 0.0, true};

  // k tau = log[(1 + c/Omega_0)/(1 + c/Omega)]/c, c = mu_0 - Omega_0      theory: eq:warm-up-clock
  const double first = std::abs(task.omega(w)) * scale;
  const double now = std::exp(u);
  const double imbalance = std::abs(task.mu(w)) - first;
  const double gain = (1.0 / first - 1.0 / now) / (1.0 + imbalance / now);
  const double z = imbalance * gain;
  const double clock = std::abs(z) < 1e-12 ? gain : gain * std::log1p(z) / z;

  for (Eigen::Index h = 0; h < task.mu.size(); ++h) {
    if (task.mu(h) * task.omega(h) <= 0.0) continue;  // a product of the wrong sign decays: left where it starts
    const double sign = std::copysign(1.0, task.mu(h));
    const double mu = std::abs(task.mu(h));
    const double start = std::abs(task.omega(h)) * scale;
    // 1/Omega = exp(-c k tau)/Omega_0 - (1 - exp(-c k tau))/c             theory: eq:warm-up-rival
    const double x = (mu - start) * clock;
    const double inverse = std::exp(-x) / start + (std::abs(x) < 1e-12 ? -clock : clock * std::expm1(-x) / x);
    const double large = h == w ? now : 1.0 / inverse;
    // mu = Omega/(1+kd) + {mu_0 + R - Omega_0/(1+kd)} (Omega_0/Omega)^kd - R, kd = phi d/(L s), R the other heads' mu_0
    //                                                                     theory: eq:warm-up-curve-split
    const double rest = sign * total - mu;
    const double bracket = (mu + rest - start / (1.0 + damping)) * std::pow(start / large, damping);
    const double value = large / (1.0 + damping) + bracket - rest;
    p.valid = p.valid && inverse > 0.0 && value > 0.0;
    p.mu(h) = sign * value;
    p.omega(h) = sign * large / scale;
    if (h == w) p.winner_slope = (value + large / (1.0 + damping) - damping * bracket) * large / scale;
  }
  return p;
}

/// Merged, u = P tau / sqrt(d), tau' = r: linear in (mu, sqrt(d) omega); only the heads' common mode is damped.
CurvePoint merged_point(const OneTask& task, double u) {
  const double root = std::sqrt(task.d());
  const auto heads = static_cast<double>(task.problem.heads);
  const double damping = heads * task.noise_ratio() / root;
  const auto w = static_cast<Eigen::Index>(task.winner);
  const double mean_mu = task.mu.mean();
  const double mean_omega = root * task.omega.mean();
  // (mu, W)' = ((-kd, 1), (1, 0)) (mu, W): rates -kd/2 +- sqrt(1 + kd^2/4), kd = H phi sqrt(d)/L for the mean, 0 for
  // what differs between heads                                            theory: eq:warm-up-curve-merged
  const double half = std::sqrt(1.0 + 0.25 * damping * damping);
  const double decay = std::exp(-0.5 * damping * u);
  const double c = decay * std::cosh(half * u);
  const double s = decay * std::sinh(half * u) / half;
  const double mu = (c - 0.5 * damping * s) * mean_mu + s * mean_omega;
  const double omega = s * mean_mu + (c + 0.5 * damping * s) * mean_omega;
  CurvePoint p;
  p.mu = (std::cosh(u) * (task.mu.array() - mean_mu) + std::sinh(u) * (root * task.omega.array() - mean_omega) + mu)
             .matrix();
  p.omega =
      ((std::sinh(u) * (task.mu.array() - mean_mu) + std::cosh(u) * (root * task.omega.array() - mean_omega) + omega) /
       root)
          .matrix();
  const double mu_slope = root * p.omega(w) - damping * mu;
  p.winner_slope = mu_slope * p.omega(w) + p.mu(w) * p.mu(w) / root;
  return p;
}

/// Exact speed of the winner's product at a point, and what it would be without damping (the drive alone).
struct Speed {
  double exact;
  double drive;
};

Speed winner_speed(const OneTask& task, const CurvePoint& p) {
  Eigen::VectorXd gradient;
  task.loss->gradient(OneTask::state(p), gradient);
  const auto w = static_cast<Eigen::Index>(task.winner);
  const double mu = p.mu(w);
  const double omega = p.omega(w);
  const double mu_mobility = task.merged() ? 1.0 : 2.0 * std::abs(mu);
  const double omega_mobility = task.merged() ? 1.0 : 2.0 * task.score_factor * std::abs(omega);
  // (mu omega)' = -m(mu) omega d ell/d mu - m(omega) mu d ell/d omega_j   theory: eq:warm-up-speed
  const double exact = -mu_mobility * omega * gradient(w) - omega_mobility * mu * gradient(p.mu.size() + w) / task.d();
  const double residual = 1.0 - p.mu.dot(p.omega);
  const double drive = task.power() * residual * (mu_mobility * omega * omega + omega_mobility * mu * mu / task.d());
  return {exact, drive};
}

/// Whether the end of the emergence lies on the curve: damping has not taken over (from there the loss falls slowly
/// along the valley mu omega = 1), rivals hold little of the task (they decay there), and no other task's omega of a
/// shared merged head adds to the damping. The bounds keep the error near 1 %, see theory/06-phases-allocation.md.
bool still_emerging(const OneTask& task, const CurvePoint& p) {
  const auto w = static_cast<Eigen::Index>(task.winner);
  const Speed speed = winner_speed(task, p);
  const bool rivals_small = p.mu(w) * p.omega(w) >= 0.85 * p.mu.dot(p.omega);
  return speed.exact >= 0.5 * speed.drive && (task.merged() ? task.alone : rivals_small);
}

/// First u > begin with loss <= level on the curve; empty when the product reaches 1 or the curve breaks down before.
std::optional<double> find_level(const OneTask& task, const Curve& curve, double begin, double level) {
  constexpr double stride = 0.02;  // e-folds of the winner's omega: many points per decade of any loss curve
  const auto excess = [&](double u) { return task.loss_at(curve(u)) - level; };
  for (double u = begin; u < begin + 2000.0; u += stride) {
    const CurvePoint next = curve(u + stride);
    if (!next.valid) return std::nullopt;
    if (task.loss_at(next) <= level) {
      if (!(excess(u) > 0.0)) return u;
      if (!std::isfinite(excess(u)) || !std::isfinite(excess(u + stride))) return std::nullopt;
      std::uintmax_t iterations = 100;
      const auto bracket = boost::math::tools::toms748_solve(excess, u, u + stride,
                                                             boost::math::tools::eps_tolerance<double>(40), iterations);
      return 0.5 * (bracket.first + bracket.second);
    }
    if (next.mu.dot(next.omega) >= 1.0) return std::nullopt;
  }
  return std::nullopt;
}

/// The dynamics of task i alone; empty where the formulas do not apply.
std::optional<OneTask> isolate(const Problem& problem, const InitialState& start, int i) {
  const auto index = static_cast<std::size_t>(i);
  const auto block = [&](const Matrix& m) {
    return m.middleCols(problem.block_begin(i), problem.task_dimensions[index]);
  };
  if ((block(start.omega).array() != block(start.omega).col(0).replicate(1, block(start.omega).cols()).array()).any()) {
    return std::nullopt;
  }
  const bool split = problem.parametrisation == Parametrisation::split;
  if (split && (start.imbalance_mu.col(i).any() || block(start.imbalance_omega).any())) return std::nullopt;

  OneTask task{problem, problem.score_factor(), problem.tasks() == 1, 0, start.mu.col(i), block(start.omega).col(0),
               nullptr};
  task.mu.maxCoeff(&task.winner);
  if (!(task.mu(task.winner) > 0.0) || !(task.omega(task.winner) > 0.0)) return std::nullopt;
  task.problem.task_dimensions = {problem.task_dimensions[index]};
  task.problem.response_scale = ResponseScale::unit;
  task.problem.signal_variance = {problem.signal_power(i) / problem.task_dimensions[index]};
  task.loss = make_population_loss("large-context", task.problem, Coordinates::blocks(task.problem));
  return task;
}

std::optional<WarmUp> warm_up(const OneTask& task) {
  const auto w = static_cast<Eigen::Index>(task.winner);
  const double begin = task.merged() ? 0.0 : std::log(task.omega(w) * task.d() / task.score_factor);
  const Curve curve = [&](double u) { return task.merged() ? merged_point(task, u) : split_point(task, u); };
  // t = int (d(mu omega)/du) / (mu omega)' du along the curve             theory: eq:warm-up-time
  const auto integrand = [&](double u) {
    const CurvePoint p = curve(u);
    return p.winner_slope / winner_speed(task, p).exact;
  };
  const double first = task.loss_at({task.mu, task.omega, 0.0, true});
  const double x = std::numbers::e * task.noise_ratio();
  const double last = 0.5 * task.power() * x / (1.0 + x);
  const auto time_to = [&](double fraction, double from) -> std::optional<std::pair<double, double>> {
    const auto u = find_level(task, curve, from, first - fraction * (first - last));
    if (!u) return std::nullopt;
    if (fraction > 0.9 && !still_emerging(task, curve(*u))) return std::nullopt;
    using Quadrature = boost::math::quadrature::gauss_kronrod<double, 31>;
    return std::pair{*u, Quadrature::integrate(integrand, from, *u, 12, 1e-8)};
  };
  const auto early = time_to(0.05, begin);
  if (!early) return std::nullopt;
  const auto middle = time_to(0.50, early->first);
  if (!middle) return std::nullopt;
  WarmUp times{task.winner, early->second, early->second + middle->second, std::nullopt};
  if (const auto late = time_to(0.95, middle->first)) times.emergence_end = times.emergence_time + late->second;
  return times;
}

}  // namespace

double emergence_offset(double fraction) {
  // (atanh z - 1/z)/2, z^2 = 1 - sqrt(1 - fraction)                       theory: eq:emergence-profile
  const double z = std::sqrt(1.0 - std::sqrt(1.0 - fraction));
  return 0.5 * (std::atanh(z) - 1.0 / z);
}

std::vector<std::optional<WarmUp>> warm_up_times(const Problem& problem, const InitialState& start) {
  std::vector<std::optional<WarmUp>> times;
  for (int i = 0; i < problem.tasks(); ++i) {
    const auto task = isolate(problem, start, i);
    times.push_back(task ? warm_up(*task) : std::nullopt);
  }
  return times;
}

}  // namespace iclflow
