#include "mesa/context_moments.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace iclflow {

namespace {

/// out += scale (matrix x), the matrix by columns of `rows` numbers.
void add_product(const double* matrix, const std::vector<double>& x, std::size_t rows, double scale, double* out) {
  for (const double entry : x) {
    const double factor = scale * entry;
    for (std::size_t i = 0; i < rows; ++i) out[i] += factor * matrix[i];
    matrix += rows;
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

ContextMoments::ContextMoments(int dimension, int stacked)
    : n_(static_cast<std::size_t>(dimension)),
      size_(n_ * static_cast<std::size_t>(stacked)),
      query_(size_),
      m_(size_ * size_),
      g_(n_ * size_),
      now_(size_),
      before_(size_),
      next_(size_),
      factor_(size_ * size_) {}

void ContextMoments::clear() {
  seen_ = 0;
  std::fill(query_.begin(), query_.end(), 0.0);
  std::fill(m_.begin(), m_.end(), 0.0);
  std::fill(g_.begin(), g_.end(), 0.0);
}

void ContextMoments::observe(const double* state) {
  // M_t = sum_{t' < t} z_t' z_t'^T, G_t = sum_{t' <= t} s_t' z_{t'-1}^T (theory: eq:context-moments)
  if (seen_ * n_ >= size_) {
    for (std::size_t j = 0; j < size_; ++j) {
      for (std::size_t i = 0; i < size_; ++i) m_[j * size_ + i] += query_[i] * query_[j];
      for (std::size_t i = 0; i < n_; ++i) g_[j * n_ + i] += state[i] * query_[j];
    }
  }
  ++seen_;
  std::copy_backward(query_.begin(), query_.end() - static_cast<std::ptrdiff_t>(n_), query_.end());
  std::copy(state, state + n_, query_.begin());
}

double ContextMoments::norm(double ridge) const {
  double square = 0.0;
  for (std::size_t k = 0; k < m_.size(); ++k) {
    const double entry = k % (size_ + 1) == 0 ? m_[k] + ridge : m_[k];
    square += entry * entry;
  }
  return std::sqrt(square);
}

void ContextMoments::features(const PolynomialFamily& family, double* out) {
  const double inverse = 1.0 / (family.normalised ? norm(family.ridge) : family.scale);
  const double diagonal = 2.0 * family.ridge * inverse - 1.0;
  std::fill(before_.begin(), before_.end(), 0.0);
  for (std::size_t i = 0; i < size_; ++i) now_[i] = query_[i] * inverse;
  for (int k = 0; k < family.count; ++k, out += n_) {
    std::fill(out, out + n_, 0.0);
    add_product(g_.data(), now_, n_, 1.0, out);
    if (k + 1 == family.count) break;
    // (k + 1) P_{k+1}(y) = (2 k + 1) y P_k(y) - k P_{k-1}(y) at y = 2 A / nu - 1
    const double first = (2.0 * k + 1.0) / (k + 1.0);
    const double second = k / (k + 1.0);
    for (std::size_t i = 0; i < size_; ++i) next_[i] = first * diagonal * now_[i] - second * before_[i];
    add_product(m_.data(), now_, size_, 2.0 * first * inverse, next_.data());
    std::swap(before_, now_);
    std::swap(now_, next_);
  }
}

void ContextMoments::ridge(double ridge, double* out) {
  factor_ = m_;
  for (std::size_t i = 0; i < size_; ++i) factor_[i * (size_ + 1)] += ridge;
  now_ = query_;
  solve(factor_.data(), now_.data(), size_);
  std::fill(out, out + n_, 0.0);
  // f_t = G_t (M_t + I / lambda)^-1 z_t (theory: eq:autoregressive-ridge)
  add_product(g_.data(), now_, n_, 1.0, out);
}

}  // namespace iclflow
