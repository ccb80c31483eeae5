#include "sampled_worker.hpp"

#include <algorithm>

namespace iclflow {

namespace {

std::size_t size_of(int count) { return static_cast<std::size_t>(count); }

using Row = Eigen::Map<Eigen::ArrayXd>;
using ConstRow = Eigen::Map<const Eigen::ArrayXd>;

}  // namespace

SampledSums::SampledSums(int heads, int tasks, int size)
    : bias(tasks),
      overlap(heads, heads),
      overlap_change(heads, heads),
      slope(heads * (tasks + size)),
      change(heads * (tasks + size)) {
  clear();
}

void SampledSums::clear() {
  bias.setZero();
  overlap.setZero();
  overlap_change.setZero();
  slope.setZero();
  change.setZero();
}

void SampledSums::add(const SampledSums& other) {
  bias += other.bias;
  overlap += other.overlap;
  overlap_change += other.overlap_change;
  slope += other.slope;
  change += other.change;
}

SampledLoss::Worker::Worker(const Problem& problem, const Coordinates& coordinates)
    : heads_(problem.heads),
      tasks_(problem.tasks()),
      size_(coordinates.size()),
      task_(coordinates.task),
      noise_weight_(problem.tasks()),
      shared_(problem.heads, problem.heads),
      shared_change_(problem.heads, problem.heads),
      residual_(size_of(size_)),
      attention_(size_of(size_), size_of(heads_), size_of(problem.context_length)),
      row_(padded(size_of(size_ + heads_))) {
  for (int i = 0; i < tasks_; ++i) {
    const double d = problem.task_dimensions[size_of(i)];
    const auto columns = static_cast<double>(std::count(task_.begin(), task_.end(), i));
    amplitude_.push_back(problem.signal_power(i) / d);
    noise_weight_(i) = amplitude_.back() * (d - columns) + problem.noise_variance;
  }
  const std::size_t tokens = size_of(heads_) * attention_.stride();
  for (AlignedArray<double>* array : {&weight_change_, &score_slope_, &score_slope_change_}) {
    *array = aligned_zeros<double>(tokens);
  }
  for (AlignedArray<double>* array : {&along_, &pooled_change_, &overlap_change_, &back_}) {
    *array = aligned_zeros<double>(size_of(heads_) * row_);
  }
}

void SampledLoss::Worker::look_at(const double* state, const double* direction) {
  state_ = state;
  direction_ = direction;
  const Eigen::Map<const Matrix> mu(state, heads_, tasks_);
  shared_.noalias() = mu * noise_weight_.asDiagonal() * mu.transpose();
  if (direction == nullptr) return;
  const Eigen::Map<const Matrix> change(direction, heads_, tasks_);
  shared_change_.noalias() = mu * noise_weight_.asDiagonal() * change.transpose();
  shared_change_ += shared_change_.transpose().eval();
}

/// s^h = sum_k omega_hk chi_k Z_k, P = softmax, m = Z^T P, C = P^T P, r_k = chi_k - sum_h mu_hi m_kh
///                                                                         theory: eq:sampled-loss
void SampledLoss::Worker::attend(const Contexts& contexts, int context, SampledSums& sums) {
  const double* chi = contexts.chi(context);
  contexts.coordinates(context, attention_.coordinates());
  for (int h = 0; h < heads_; ++h) {
    double* mixing = attention_.mixing(size_of(h));
    for (int k = 0; k < size_; ++k) mixing[k] = omega(h, k) * chi[k];
  }
  attention_.score();
  attention_.attend();
  for (int k = 0; k < size_; ++k) {
    const int i = task_[size_of(k)];
    double residual = chi[k];
    for (int h = 0; h < heads_; ++h) residual -= mu(h, i) * attention_.pooled(size_of(h))[k];
    residual_[size_of(k)] = residual;
    sums.bias(i) += 0.5 * amplitude_[size_of(i)] * residual * residual;
  }
  for (int h = 0; h < heads_; ++h) {
    for (int g = 0; g < heads_; ++g) sums.overlap(h, g) += attention_.overlap(size_of(h))[g];
  }
}

void SampledLoss::Worker::value(const Contexts& contexts, int context, SampledSums& sums) {
  attend(contexts, context, sums);
}

/// d/d mu_hi of the bias = -a_i sum_k r_k m_kh;  mbar_kh = -a_i r_k mu_hi, N_hg = sum_i (a_i tau_i + sigma^2) mu_hi
/// mu_gi, d/d omega_hk = chi_k Rbar_kh                                     theory: eq:sampled-gradient
void SampledLoss::Worker::pull_back(const double* chi, double* slope) {
  double* slope_omega = slope + heads_ * tasks_;
  for (int h = 0; h < heads_; ++h) {
    double* direction = attention_.pooled_slope(size_of(h));
    for (int k = 0; k < size_; ++k) {
      const int i = task_[size_of(k)];
      const double force = -amplitude_[size_of(i)] * residual_[size_of(k)];
      slope[h * tasks_ + i] += force * attention_.pooled(size_of(h))[k];
      direction[k] = force * mu(h, i);
    }
    std::copy_n(shared_.row(h).data(), heads_, attention_.overlap_slope(size_of(h)));
  }
  attention_.pull_back();
  for (int h = 0; h < heads_; ++h) {
    const double* back = attention_.mixing_slope(size_of(h));
    for (int k = 0; k < size_; ++k) slope_omega[h * size_ + k] += chi[k] * back[k];
  }
}

void SampledLoss::Worker::gradient(const Contexts& contexts, int context, SampledSums& sums) {
  attend(contexts, context, sums);
  pull_back(contexts.chi(context), sums.slope.data());
}

void SampledLoss::Worker::curvature(const Contexts& contexts, int context, SampledSums& sums) {
  const double* chi = contexts.chi(context);
  attend(contexts, context, sums);
  change_of_attention(chi, sums);
  change_of_slopes(chi, sums);
}

/// P' = p * (s' - <p, s'>) with s' = Z R', m' = Z^T P', C' = P'^T P + P^T P'.
void SampledLoss::Worker::change_of_attention(const double* chi, SampledSums& sums) {
  const std::size_t stride = attention_.stride();
  const auto heads = size_of(heads_);
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size_; ++k) along_[size_of(h) * row_ + size_of(k)] = omega_change(h, k) * chi[k];
  }
  scores(attention_.coordinates(), stride, size_of(size_), along_.get(), row_, heads, weight_change_.get());
  softmax_backward(attention_.attention(0), weight_change_.get(), stride, heads);
  pool(attention_.coordinates(), stride, size_of(size_), weight_change_.get(), heads, pooled_change_.get(), row_);
  pool(attention_.attention(0), stride, heads, weight_change_.get(), heads, overlap_change_.get(), row_);
  for (int h = 0; h < heads_; ++h) {
    for (int g = 0; g < heads_; ++g) {
      sums.overlap_change(h, g) +=
          overlap_change_[size_of(h) * row_ + size_of(g)] + overlap_change_[size_of(g) * row_ + size_of(h)];
    }
  }
}

/// The derivative of eq:sampled-gradient along the direction:
///   Pbar' = Z mbar' + P N' + P' N,  Sbar' = p' * A + p * (Pbar' - <p, Pbar'> - <p', A>), A = Pbar - <p, Pbar>.
///                                                                         theory: eq:sampled-hessian
void SampledLoss::Worker::change_of_slopes(const double* chi, SampledSums& sums) {
  const std::size_t stride = attention_.stride();
  const auto length = static_cast<Eigen::Index>(stride);
  const auto heads = size_of(heads_);
  double* change = sums.change.data();
  double* change_omega = change + heads_ * tasks_;
  for (int k = 0; k < size_; ++k) {
    const int i = task_[size_of(k)];
    double residual_change = 0.0;
    for (int h = 0; h < heads_; ++h) {
      residual_change -= mu_change(h, i) * attention_.pooled(size_of(h))[k] +
                         mu(h, i) * pooled_change_[size_of(h) * row_ + size_of(k)];
    }
    const double force = -amplitude_[size_of(i)] * residual_[size_of(k)];
    const double force_change = -amplitude_[size_of(i)] * residual_change;
    for (int h = 0; h < heads_; ++h) {
      change[h * tasks_ + i] +=
          force_change * attention_.pooled(size_of(h))[k] + force * pooled_change_[size_of(h) * row_ + size_of(k)];
      attention_.pooled_slope(size_of(h))[k] = force * mu(h, i);
      along_[size_of(h) * row_ + size_of(k)] = force_change * mu(h, i) + force * mu_change(h, i);
    }
  }
  for (int h = 0; h < heads_; ++h) {
    std::copy_n(shared_.row(h).data(), heads_, attention_.overlap_slope(size_of(h)));
    std::copy_n(shared_change_.row(h).data(), heads_, &along_[size_of(h) * row_ + size_of(size_)]);
  }
  const std::size_t rows = size_of(size_ + heads_);
  scores(attention_.coordinates(), stride, rows, attention_.pooled_slope(0), row_, heads, score_slope_.get());
  scores(attention_.coordinates(), stride, rows, along_.get(), row_, heads, score_slope_change_.get());
  for (int h = 0; h < heads_; ++h) {
    for (int g = 0; g < heads_; ++g) {
      add_scaled(&weight_change_[size_of(g) * stride], shared_(h, g), stride,
                 &score_slope_change_[size_of(h) * stride]);
    }
  }
  softmax_backward(attention_.attention(0), score_slope_change_.get(), stride, heads);
  for (std::size_t h = 0; h < heads; ++h) {
    const ConstRow weight(attention_.attention(h), length);
    const ConstRow weight_change(&weight_change_[h * stride], length);
    const ConstRow score_slope(&score_slope_[h * stride], length);
    Row result(&score_slope_change_[h * stride], length);
    const double mean = (weight * score_slope).sum();
    const double mean_change = (weight_change * score_slope).sum();
    result += weight_change * (score_slope - mean) - weight * mean_change;
  }
  pool(attention_.coordinates(), stride, size_of(size_), score_slope_change_.get(), heads, back_.get(), row_);
  for (int h = 0; h < heads_; ++h) {
    for (int k = 0; k < size_; ++k) {
      change_omega[h * size_ + k] += chi[k] * back_[size_of(h) * row_ + size_of(k)];
    }
  }
}

}  // namespace iclflow
