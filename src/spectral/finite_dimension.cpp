#include "iclflow/spectral/finite_dimension.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace iclflow {

namespace {

/// D_hh / L up to which the closure is trusted, and up to which its formulas are evaluated.
constexpr double trusted = 0.2;
constexpr double defined = 0.4;
constexpr double lowest_margin = -1e6;

/// A number and its derivative along one direction: the gradient in these numbers yields Hessian times direction.
struct Dual {
  double value = 0.0;
  double slope = 0.0;
  Dual() = default;
  Dual(double v) : value(v) {}  // NOLINT(google-explicit-constructor): constants mix with variables in formulas
  Dual(double v, double s) : value(v), slope(s) {}
  Dual& operator+=(const Dual& b) {
    value += b.value;
    slope += b.slope;
    return *this;
  }
  Dual& operator-=(const Dual& b) {
    value -= b.value;
    slope -= b.slope;
    return *this;
  }
};
Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
Dual operator*(const Dual& a, const Dual& b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
Dual operator/(const Dual& a, const Dual& b) {
  const double ratio = a.value / b.value;
  return {ratio, (a.slope - ratio * b.slope) / b.value};
}
Dual exp(const Dual& a) {
  const double e = std::exp(a.value);
  return {e, e * a.slope};
}
Dual log1p(const Dual& a) { return {std::log1p(a.value), a.slope / (1.0 + a.value)}; }

std::size_t at(int row, int column, int columns) { return static_cast<std::size_t>(row * columns + column); }

}  // namespace

/// Per thread and reused, so that a right-hand side allocates nothing.
template <typename Scalar>
struct FiniteDimension::Moments {
  std::vector<Scalar> residual;   ///< r_k
  std::vector<Scalar> overlap;    ///< D_hg, H x H
  std::vector<Scalar> sharpness;  ///< 1 / (1 - 2 omega_hk omega_gk), H x H x K
  std::vector<Scalar> drift;      ///< T_hi = sum_k w_k omega_hk r_k / (1 - 2 omega_hk^2), H x I
  std::vector<Scalar> spread;     ///< S_hg,i = d_i phi_i + sum_k w_k u / (1 - 2 u), H x H x I

  static Moments& of_this_thread() {
    static thread_local Moments moments;
    return moments;
  }
};

FiniteDimension::FiniteDimension(const Problem& problem, const Coordinates& coordinates)
    : heads_(problem.heads),
      tasks_(problem.tasks()),
      size_(coordinates.size()),
      length_(problem.context_length),
      task_(coordinates.task),
      multiplicity_(coordinates.multiplicity) {
  for (int i = 0; i < tasks_; ++i) {
    const double d = problem.task_dimensions[static_cast<std::size_t>(i)];
    bias_weight_.push_back(problem.signal_power(i) / d);
    noise_overlap_.push_back(d * problem.noise_factor(i));
  }
}

template <typename Scalar>
void FiniteDimension::prepare(const Scalar* x, Moments<Scalar>& s) const {
  using std::exp;
  using std::log1p;
  const Scalar* mu = x;
  const Scalar* omega = x + heads_ * tasks_;
  const auto heads = static_cast<std::size_t>(heads_);
  s.residual.assign(static_cast<std::size_t>(size_), Scalar(1.0));
  s.overlap.resize(heads * heads);
  s.sharpness.resize(heads * heads * static_cast<std::size_t>(size_));
  s.drift.assign(heads * static_cast<std::size_t>(tasks_), Scalar(0.0));
  s.spread.resize(heads * heads * static_cast<std::size_t>(tasks_));
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size_; ++k) {
      const auto c = static_cast<std::size_t>(k);
      s.residual[c] -= mu[at(h, task_[c], tasks_)] * omega[at(h, k, size_)];
    }
  }
  for (int h = 0; h < heads_; ++h) {
    for (int g = 0; g < heads_; ++g) {
      // D_hg = prod_k (1 - 2 omega_hk omega_gk)^{-w_k/2}                   theory: eq:query-overlap
      Scalar log_overlap = 0.0;
      for (int i = 0; i < tasks_; ++i)
        s.spread[at(h * heads_ + g, i, tasks_)] = noise_overlap_[static_cast<std::size_t>(i)];
      for (int k = 0; k < size_; ++k) {
        const auto c = static_cast<std::size_t>(k);
        const Scalar u = omega[at(h, k, size_)] * omega[at(g, k, size_)];
        const Scalar sharpness = Scalar(1.0) / (Scalar(1.0) - Scalar(2.0) * u);
        s.sharpness[at(h * heads_ + g, k, size_)] = sharpness;
        log_overlap -= Scalar(0.5 * multiplicity_[c]) * log1p(Scalar(-2.0) * u);
        s.spread[at(h * heads_ + g, task_[c], tasks_)] += Scalar(multiplicity_[c]) * u * sharpness;
        if (g == h) {
          s.drift[at(h, task_[c], tasks_)] +=
              Scalar(multiplicity_[c]) * omega[at(h, k, size_)] * sharpness * s.residual[c];
        }
      }
      s.overlap[at(h, g, heads_)] = exp(log_overlap);
    }
  }
}

double FiniteDimension::value(const Eigen::VectorXd& state) const { return by_task(state).sum(); }

Eigen::VectorXd FiniteDimension::by_task(const Eigen::VectorXd& state) const {
  require_defined(state);
  auto& s = Moments<double>::of_this_thread();
  prepare(state.data(), s);
  // ell_i = (b_i/2) { sum_k w_k r_k^2 + (1/L) [ 2 sum_h mu_hi D_hh T_hi + sum_hg mu_hi mu_gi D_hg S_hg,i ] }
  //                                                                       theory: eq:finite-dimension-loss
  Eigen::VectorXd loss = Eigen::VectorXd::Zero(tasks_);
  const double* mu = state.data();
  for (int k = 0; k < size_; ++k) {
    const auto c = static_cast<std::size_t>(k);
    loss(task_[c]) += multiplicity_[c] * s.residual[c] * s.residual[c];
  }
  for (int i = 0; i < tasks_; ++i) {
    double excess = 0.0;
    for (int h = 0; h < heads_; ++h) {
      excess += 2.0 * mu[at(h, i, tasks_)] * s.overlap[at(h, h, heads_)] * s.drift[at(h, i, tasks_)];
      for (int g = 0; g < heads_; ++g) {
        excess += mu[at(h, i, tasks_)] * mu[at(g, i, tasks_)] * s.overlap[at(h, g, heads_)] *
                  s.spread[at(h * heads_ + g, i, tasks_)];
      }
    }
    loss(i) = 0.5 * bias_weight_[static_cast<std::size_t>(i)] * (loss(i) + excess / length_);
  }
  return loss;
}

/// The slopes of D_hg and of S_hg,i, the terms in which two heads meet.
template <typename Scalar>
void FiniteDimension::add_overlap_slopes(const Scalar* x, const Moments<Scalar>& s, Scalar* slope) const {
  const Scalar* mu = x;
  const Scalar* omega = x + heads_ * tasks_;
  Scalar* slope_omega = slope + heads_ * tasks_;
  for (int h = 0; h < heads_; ++h) {
    for (int g = 0; g < heads_; ++g) {
      const Scalar& overlap = s.overlap[at(h, g, heads_)];
      Scalar shared = 0.0;  // sum_j (b_j/L) mu_hj mu_gj S_hg,j
      for (int i = 0; i < tasks_; ++i) {
        const Scalar weight = Scalar(bias_weight_[static_cast<std::size_t>(i)] / length_) * overlap;
        const Scalar& spread = s.spread[at(h * heads_ + g, i, tasks_)];
        slope[at(h, i, tasks_)] += weight * mu[at(g, i, tasks_)] * spread;
        shared += weight * mu[at(h, i, tasks_)] * mu[at(g, i, tasks_)] * spread;
      }
      for (int k = 0; k < size_; ++k) {
        const auto c = static_cast<std::size_t>(k);
        const int i = task_[c];
        const Scalar& sharpness = s.sharpness[at(h * heads_ + g, k, size_)];
        const Scalar own = Scalar(bias_weight_[static_cast<std::size_t>(i)] / length_) * overlap *
                           mu[at(h, i, tasks_)] * mu[at(g, i, tasks_)] * sharpness;
        slope_omega[at(h, k, size_)] += Scalar(multiplicity_[c]) * omega[at(g, k, size_)] * sharpness * (shared + own);
      }
    }
  }
}

template <typename Scalar>
void FiniteDimension::gradient_of(const Scalar* x, Scalar* slope) const {
  auto& s = Moments<Scalar>::of_this_thread();
  prepare(x, s);
  const Scalar* mu = x;
  const Scalar* omega = x + heads_ * tasks_;
  Scalar* slope_omega = slope + heads_ * tasks_;
  std::fill_n(slope, heads_ * (tasks_ + size_), Scalar(0.0));
  // With e_hgk = 1 / (1 - 2 omega_hk omega_gk) and b_i = P_i / d_i:
  // d ell/d mu_hi  = b_i { -sum_k w_k omega_hk (r_k + G_k) + (1/L) [ D_hh T_hi + sum_g mu_gi D_hg S_hg,i ] }
  // d ell/d omega_hk = w_k { -b_i mu_hi (r_k + G_k) + (b_i/L) mu_hi D_hh e_hhk^2 (1 + 2 omega_hk^2) r_k
  //     + 2 omega_hk e_hhk D_hh sum_j (b_j/L) mu_hj T_hj
  //     + sum_g omega_gk e_hgk D_hg [ sum_j (b_j/L) mu_hj mu_gj S_hg,j + (b_i/L) mu_hi mu_gi e_hgk ] },
  // G_k = (1/L) sum_f mu_fi D_ff omega_fk e_ffk                           theory: eq:finite-dimension-gradient
  for (int k = 0; k < size_; ++k) {
    const auto c = static_cast<std::size_t>(k);
    const int i = task_[c];
    Scalar pull = s.residual[c];
    for (int f = 0; f < heads_; ++f) {
      pull += Scalar(1.0 / length_) * mu[at(f, i, tasks_)] * s.overlap[at(f, f, heads_)] * omega[at(f, k, size_)] *
              s.sharpness[at(f * heads_ + f, k, size_)];
    }
    pull = Scalar(multiplicity_[c] * bias_weight_[static_cast<std::size_t>(i)]) * pull;
    for (int h = 0; h < heads_; ++h) {
      slope[at(h, i, tasks_)] -= pull * omega[at(h, k, size_)];
      slope_omega[at(h, k, size_)] -= pull * mu[at(h, i, tasks_)];
    }
  }
  for (int h = 0; h < heads_; ++h) {
    const Scalar& overlap = s.overlap[at(h, h, heads_)];
    Scalar total = 0.0;
    for (int i = 0; i < tasks_; ++i) {
      const Scalar drift =
          Scalar(bias_weight_[static_cast<std::size_t>(i)] / length_) * overlap * s.drift[at(h, i, tasks_)];
      slope[at(h, i, tasks_)] += drift;
      total += mu[at(h, i, tasks_)] * drift;
    }
    for (int k = 0; k < size_; ++k) {
      const auto c = static_cast<std::size_t>(k);
      const int i = task_[c];
      const Scalar& w = omega[at(h, k, size_)];
      const Scalar& sharpness = s.sharpness[at(h * heads_ + h, k, size_)];
      const Scalar own = Scalar(bias_weight_[static_cast<std::size_t>(i)] / length_) * mu[at(h, i, tasks_)] * overlap *
                         sharpness * (Scalar(1.0) + Scalar(2.0) * w * w) * s.residual[c];
      slope_omega[at(h, k, size_)] += Scalar(multiplicity_[c]) * sharpness * (own + Scalar(2.0) * w * total);
    }
  }
  add_overlap_slopes(x, s, slope);
}

void FiniteDimension::gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const {
  require_defined(state);
  gradient.resize(state.size());
  gradient_of(state.data(), gradient.data());
}

void FiniteDimension::hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                                     Eigen::VectorXd& product) const {
  require_defined(state);
  static thread_local std::vector<Dual> x;
  static thread_local std::vector<Dual> slope;
  const auto size = static_cast<std::size_t>(state.size());
  x.resize(size);
  slope.resize(size);
  for (std::size_t j = 0; j < size; ++j) {
    const auto e = static_cast<Eigen::Index>(j);
    x[j] = {state(e), direction(e)};
  }
  gradient_of(x.data(), slope.data());
  product.resize(state.size());
  for (std::size_t j = 0; j < size; ++j) product(static_cast<Eigen::Index>(j)) = slope[j].slope;
}

double FiniteDimension::log_overlap(const SpectralView<const double>& x, int head) const {
  double sum = 0.0;
  for (int k = 0; k < size_; ++k) {
    const double twice = 2.0 * x.omega(head, k) * x.omega(head, k);
    if (!(twice < 1.0)) return std::numeric_limits<double>::infinity();
    sum -= 0.5 * multiplicity_[static_cast<std::size_t>(k)] * std::log1p(-twice);
  }
  return sum;
}

double FiniteDimension::margin(const Eigen::VectorXd& state) const {
  const SpectralView<const double> x(state.data(), heads_, tasks_, size_);
  double largest = -std::numeric_limits<double>::infinity();
  for (int h = 0; h < heads_; ++h) largest = std::max(largest, log_overlap(x, h));
  // 2 omega omega' < 1 for every pair follows from 2 omega^2 < 1 of each.
  // Finite beyond the pole, too: the edge is located by root finding.
  return std::max(std::log(trusted * length_) - largest, lowest_margin);
}

std::string FiniteDimension::beyond(const Eigen::VectorXd& state) const {
  const SpectralView<const double> x(state.data(), heads_, tasks_, size_);
  int worst = 0;
  for (int h = 1; h < heads_; ++h) {
    if (log_overlap(x, h) > log_overlap(x, worst)) worst = h;
  }
  int k = 0;
  const double size = x.omega.row(worst).cwiseAbs().maxCoeff(&k);
  const char* rest = "; closure = \"sampled\" holds there";
  if (!std::isfinite(log_overlap(x, worst))) {
    return fmt::format("2 omega^2 = {:.6g} of head {} on task {} (omega = {:.6g}) must be below 1{}", 2.0 * size * size,
                       worst, task_[static_cast<std::size_t>(k)], x.omega(worst, k), rest);
  }
  return fmt::format(
      "D / L = {:.6g} of head {} (prod_k (1 - 2 omega_k^2)^(-1/2) = {:.6g}, L = {:.0f}, largest |omega| = {:.6g} on "
      "task {}) must be at most {}{}",
      std::exp(log_overlap(x, worst)) / length_, worst, std::exp(log_overlap(x, worst)), length_, size,
      task_[static_cast<std::size_t>(k)], trusted, rest);
}

void FiniteDimension::require_defined(const Eigen::VectorXd& state) const {
  if (!(margin(state) >= std::log(trusted / defined))) {  // also for a state that is not a number
    throw std::domain_error("the closure \"finite-dimension\" ends: " + beyond(state));
  }
}

}  // namespace iclflow
