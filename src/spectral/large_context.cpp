#include "iclflow/spectral/large_context.hpp"

#include <hwy/aligned_allocator.h>

#include <cmath>
#include <cstddef>
#include <new>
#include <stdexcept>

#include "correlation_kernels.hpp"

namespace iclflow {

/// Sized at the first call of a thread and reused, so that a right-hand side allocates nothing.
struct LargeContext::Scratch {
  Eigen::RowVectorXd residual;         ///< r_k
  Eigen::RowVectorXd residual_change;  ///< derivative of r_k along a direction
  Matrix weighted_omega;               ///< omega_hk w_k
  Matrix correlation;                  ///< E
  Matrix correlation_change;           ///< derivative of E along a direction
  Matrix attraction;                   ///< E_hh' sum_i (P_i phi_i / L) mu_hi mu_h'i, or its derivative
  Matrix weighted_mu;                  ///< mu_hi P_i phi_i / L
  Matrix half;                         ///< one of the two mirrored terms of a symmetric sum

  hwy::AlignedFreeUniquePtr<double[]> kernel;  ///< what the gradient's kernel works on
  std::size_t kernel_size = 0;

  double* of_size(std::size_t size) {
    if (size > kernel_size) {
      kernel = hwy::AllocateAligned<double>(size);
      if (!kernel) throw std::bad_alloc();
      kernel_size = size;
    }
    return kernel.get();
  }
  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
};

LargeContext::LargeContext(const Problem& problem, const Coordinates& coordinates)
    : heads_(problem.heads),
      tasks_(problem.tasks()),
      coordinates_(coordinates),
      multiplicity_(coordinates.size()),
      bias_weight_(coordinates.size()),
      noise_weight_(problem.tasks()),
      root_noise_weight_(padded(static_cast<std::size_t>(problem.tasks()))),
      root_multiplicity_(padded(coordinates.task.size())),
      inverse_root_multiplicity_(root_multiplicity_.size()),
      root_bias_weight_(root_multiplicity_.size()) {
  for (std::size_t k = 0; k < coordinates.task.size(); ++k) {
    const int i = coordinates.task[k];
    const double w = coordinates.multiplicity[k];
    const double power = problem.signal_power(i) / problem.task_dimensions[static_cast<std::size_t>(i)];
    multiplicity_(static_cast<Eigen::Index>(k)) = w;
    bias_weight_(static_cast<Eigen::Index>(k)) = w * power;
    root_multiplicity_[k] = std::sqrt(w);
    inverse_root_multiplicity_[k] = 1.0 / std::sqrt(w);
    root_bias_weight_[k] = std::sqrt(w) * power;
    while (block_begin_.size() <= static_cast<std::size_t>(i)) block_begin_.push_back(k);
    if (static_cast<std::size_t>(i) + 1 < block_begin_.size()) {
      throw std::invalid_argument("the coordinates of a task must be neighbours");
    }
  }
  while (block_begin_.size() <= static_cast<std::size_t>(tasks_)) block_begin_.push_back(coordinates.task.size());
  for (int i = 0; i < tasks_; ++i) {
    // P_i phi_i = P_i + sigma^2, so that no division by a small signal power is ever made.
    noise_weight_(i) = (problem.signal_power(i) + problem.noise_variance) / problem.context_length;
    root_noise_weight_[static_cast<std::size_t>(i)] = std::sqrt(noise_weight_(i));
  }
}

void LargeContext::prepare(const SpectralView<const double>& x, Scratch& s) const {
  const int size = coordinates_.size();
  // r_k = 1 - sum_h mu_hi omega_hk, i the task of k                       theory: eq:large-context-residual
  s.residual.setOnes(size);
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size; ++k) {
      s.residual(k) -= x.mu(h, coordinates_.task[static_cast<std::size_t>(k)]) * x.omega(h, k);
    }
  }
  // E_hh' = exp(sum_k w_k omega_hk omega_h'k)                             theory: eq:head-correlation
  s.weighted_omega.noalias() = x.omega * multiplicity_.asDiagonal();
  s.correlation.noalias() = s.weighted_omega * x.omega.transpose();
  s.correlation.array() = s.correlation.array().exp();
}

double LargeContext::value(const Eigen::VectorXd& state) const { return by_task(state).sum(); }

Eigen::VectorXd LargeContext::by_task(const Eigen::VectorXd& state) const {
  const SpectralView<const double> x(state.data(), heads_, tasks_, coordinates_.size());
  Scratch& s = Scratch::of_this_thread();
  prepare(x, s);
  // ell_i = (P_i/2) { (1/d_i) sum_k w_k r_k^2 + (phi_i/L) mu_i^T E mu_i } theory: eq:large-context-loss
  s.weighted_mu.noalias() = s.correlation * x.mu;
  Eigen::VectorXd loss =
      (0.5 * noise_weight_.array() * x.mu.cwiseProduct(s.weighted_mu).colwise().sum().array()).matrix().transpose();
  for (int k = 0; k < coordinates_.size(); ++k) {
    loss(coordinates_.task[static_cast<std::size_t>(k)]) += 0.5 * bias_weight_(k) * s.residual(k) * s.residual(k);
  }
  return loss;
}

CorrelationShape LargeContext::shape() const {
  return {static_cast<std::size_t>(heads_),  static_cast<std::size_t>(tasks_),
          coordinates_.task.size(),          block_begin_.data(),
          root_noise_weight_.data(),         root_multiplicity_.data(),
          inverse_root_multiplicity_.data(), root_bias_weight_.data()};
}

void LargeContext::gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const {
  gradient.resize(state.size());
  // d ell/d mu_hi = -(P_i/d_i) sum_k w_k omega_hk r_k + (P_i phi_i/L) (E mu_i)_h
  // d ell/d omega_hk = w_k { -(P_i/d_i) mu_hi r_k + sum_h' E_hh' (mu D mu^T)_hh' omega_h'k }, D = diag(P_i phi_i/L)
  //                                                                       theory: eq:large-context-gradient
  const CorrelationShape sizes = shape();
  double* scratch = Scratch::of_this_thread().of_size(correlation_scratch_size(sizes));
  large_context_gradient(sizes, state.data(), scratch, gradient.data());
}

void LargeContext::hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                                  Eigen::VectorXd& product) const {
  const SpectralView<const double> x(state.data(), heads_, tasks_, coordinates_.size());
  const SpectralView<const double> v(direction.data(), heads_, tasks_, coordinates_.size());
  product.resize(state.size());
  SpectralView<double> result(product.data(), heads_, tasks_, coordinates_.size());
  Scratch& s = Scratch::of_this_thread();
  prepare(x, s);
  // The derivative of eq:large-context-gradient along (v_mu, v_omega)     theory: eq:large-context-hessian
  variance_curvature(x, v, s, result);
  add_bias_curvature(x, v, s, result);
}

void LargeContext::variance_curvature(const SpectralView<const double>& x, const SpectralView<const double>& v,
                                      Scratch& s, SpectralView<double>& result) const {
  // dE = E * (v_omega W omega^T + omega W v_omega^T) entrywise
  s.half.noalias() = s.weighted_omega * v.omega.transpose();
  s.correlation_change = (s.half + s.half.transpose()).cwiseProduct(s.correlation);
  // mu: E v_mu D + dE mu D
  s.weighted_mu.noalias() = x.mu * noise_weight_.asDiagonal();
  result.mu.noalias() = s.correlation * v.mu;
  result.mu *= noise_weight_.asDiagonal();
  result.mu.noalias() += s.correlation_change * s.weighted_mu;
  // omega: { (E * S) v_omega + (dE * S + E * dS) omega } W, S = mu D mu^T
  s.attraction.noalias() = s.weighted_mu * x.mu.transpose();
  s.correlation_change.array() *= s.attraction.array();
  s.attraction.array() *= s.correlation.array();
  result.omega.noalias() = s.attraction * v.omega;
  result.omega *= multiplicity_.asDiagonal();
  s.half.noalias() = s.weighted_mu * v.mu.transpose();
  s.attraction = (s.half + s.half.transpose()).cwiseProduct(s.correlation) + s.correlation_change;
  result.omega.noalias() += s.attraction * s.weighted_omega;
}

void LargeContext::add_bias_curvature(const SpectralView<const double>& x, const SpectralView<const double>& v,
                                      Scratch& s, SpectralView<double>& result) const {
  const int size = coordinates_.size();
  s.residual_change.setZero(size);
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size; ++k) {
      const int i = coordinates_.task[static_cast<std::size_t>(k)];
      s.residual_change(k) -= v.mu(h, i) * x.omega(h, k) + x.mu(h, i) * v.omega(h, k);
    }
  }
  s.residual.array() *= bias_weight_.array();
  s.residual_change.array() *= bias_weight_.array();
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size; ++k) {
      const int i = coordinates_.task[static_cast<std::size_t>(k)];
      result.mu(h, i) -= s.residual(k) * v.omega(h, k) + s.residual_change(k) * x.omega(h, k);
      result.omega(h, k) -= s.residual(k) * v.mu(h, i) + s.residual_change(k) * x.mu(h, i);
    }
  }
}

}  // namespace iclflow
