#include "mesa/context_moments.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace iclflow {

namespace {

/// out += scale (matrix x), the matrix by columns of n numbers.
void add_product(const double* matrix, const double* x, std::size_t n, double scale, double* out) {
  for (std::size_t j = 0; j < n; ++j) {
    const double factor = scale * x[j];
    const double* column = matrix + j * n;
    for (std::size_t i = 0; i < n; ++i) out[i] += factor * column[i];
  }
}

/// Solves (factor) x = x for a positive definite matrix, of which the lower triangle is overwritten by its Cholesky
/// factor.
void solve(double* factor, double* x, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    double* column = factor + j * n;
    const double root = std::sqrt(column[j]);
    for (std::size_t i = j; i < n; ++i) column[i] /= root;
    x[j] /= column[j];
    for (std::size_t i = j + 1; i < n; ++i) x[i] -= column[i] * x[j];
    for (std::size_t k = j + 1; k < n; ++k)
      for (std::size_t i = k; i < n; ++i) factor[k * n + i] -= column[i] * column[k];
  }
  for (std::size_t j = n; j-- > 0;) {
    const double* column = factor + j * n;
    for (std::size_t i = j + 1; i < n; ++i) x[j] -= column[i] * x[i];
    x[j] /= column[j];
  }
}

}  // namespace

ContextMoments::ContextMoments(int dimension)
    : n_(static_cast<std::size_t>(dimension)),
      m_(n_ * n_),
      g_(n_ * n_),
      now_(n_),
      before_(n_),
      next_(n_),
      factor_(n_ * n_) {}

void ContextMoments::clear() {
  std::fill(m_.begin(), m_.end(), 0.0);
  std::fill(g_.begin(), g_.end(), 0.0);
}

void ContextMoments::add(const double* previous, const double* state) {
  // M_t = sum_{t' < t} s_t' s_t'^T, G_t = sum_{t' <= t} s_t' s_{t'-1}^T (theory: eq:context-moments)
  for (std::size_t j = 0; j < n_; ++j) {
    for (std::size_t i = 0; i < n_; ++i) {
      m_[j * n_ + i] += previous[i] * previous[j];
      g_[j * n_ + i] += state[i] * previous[j];
    }
  }
}

double ContextMoments::norm(double ridge) const {
  double square = 0.0;
  for (std::size_t k = 0; k < m_.size(); ++k) {
    const double entry = k % (n_ + 1) == 0 ? m_[k] + ridge : m_[k];
    square += entry * entry;
  }
  return std::sqrt(square);
}

void ContextMoments::features(const PolynomialFamily& family, const double* state, double* out) {
  const double inverse = 1.0 / (family.normalised ? norm(family.ridge) : family.scale);
  const double diagonal = 2.0 * family.ridge * inverse - 1.0;
  std::fill(before_.begin(), before_.end(), 0.0);
  for (std::size_t i = 0; i < n_; ++i) now_[i] = state[i] * inverse;
  for (int k = 0; k < family.count; ++k, out += n_) {
    std::fill(out, out + n_, 0.0);
    add_product(g_.data(), now_.data(), n_, 1.0, out);
    if (k + 1 == family.count) break;
    // (k + 1) P_{k+1}(y) = (2 k + 1) y P_k(y) - k P_{k-1}(y) at y = 2 A / nu - 1
    const double first = (2.0 * k + 1.0) / (k + 1.0);
    const double second = k / (k + 1.0);
    for (std::size_t i = 0; i < n_; ++i) next_[i] = first * diagonal * now_[i] - second * before_[i];
    add_product(m_.data(), now_.data(), n_, 2.0 * first * inverse, next_.data());
    std::swap(before_, now_);
    std::swap(now_, next_);
  }
}

void ContextMoments::ridge(double ridge, const double* state, double* out) {
  factor_ = m_;
  for (std::size_t i = 0; i < n_; ++i) factor_[i * (n_ + 1)] += ridge;
  std::copy(state, state + n_, now_.begin());
  solve(factor_.data(), now_.data(), n_);
  std::fill(out, out + n_, 0.0);
  // f_t = G_t (M_t + I / lambda)^-1 s_t (theory: eq:autoregressive-ridge)
  add_product(g_.data(), now_.data(), n_, 1.0, out);
}

}  // namespace iclflow
