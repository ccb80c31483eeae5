#include "iclflow/attention/contexts.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

// fill_normals writes whole groups; arrays it fills end with room for one more.
template <typename T>
constexpr std::size_t room(std::size_t count) {
  return whole_groups<T>(count);
}

}  // namespace

template <typename T>
Context<T>::Context(std::size_t d, std::size_t i, std::size_t l)
    : dimension(d),
      tasks(i),
      length(l),
      stride(padded(l)),
      tokens(aligned_zeros<T>(room<T>((d + i) * padded(l)))),
      query(aligned_zeros<T>(room<T>(d))),
      target(aligned_zeros<T>(i)) {}

template struct Context<float>;
template struct Context<double>;

template <typename T>
ContextSampler<T>::ContextSampler(const Problem& problem)
    : dimension_(static_cast<std::size_t>(problem.dimension())),
      tasks_(static_cast<std::size_t>(problem.tasks())),
      length_(static_cast<std::size_t>(problem.context_length)),
      rotated_(problem.rotation == Rotation::random),
      noise_deviation_(static_cast<T>(std::sqrt(problem.noise_variance))) {
  for (int i = 0; i <= problem.tasks(); ++i) block_begin_.push_back(static_cast<std::size_t>(problem.block_begin(i)));
  for (const int task : problem.task_of_coordinate()) {
    amplitude_.push_back(
        static_cast<T>(problem.response_factor() * std::sqrt(problem.signal_variance[static_cast<std::size_t>(task)])));
  }
  if (rotated_) {
    const Rotations basis = rotations(problem);
    for (const double entry : basis.phi.reshaped<Eigen::RowMajor>()) phi_.push_back(static_cast<T>(entry));
    for (const double entry : basis.psi.reshaped<Eigen::RowMajor>()) psi_.push_back(static_cast<T>(entry));
  }
}

template <typename T>
Context<T> ContextSampler<T>::empty() const {
  return Context<T>(dimension_, tasks_, length_);
}

template <typename T>
typename ContextSampler<T>::Scratch ContextSampler<T>::scratch() const {
  return {aligned_zeros<T>(room<T>(tasks_ * padded(length_))), aligned_zeros<T>(room<T>(dimension_)),
          aligned_zeros<T>(tasks_ * dimension_)};
}

/// Rows of s_y G^T (I x d) from the d normals behind Ghat. Unrotated: only task i's own block, packed at its place.
template <typename T>
void ContextSampler<T>::draw_task_weights(const T* signal, T* task_weights) const {
  std::fill_n(task_weights, tasks_ * dimension_, T{0});
  for (std::size_t task = 0; task < tasks_; ++task) {
    for (std::size_t j = block_begin_[task]; j < block_begin_[task + 1]; ++j) {
      const T entry = amplitude_[j] * signal[j];
      if (!rotated_) {
        task_weights[task * dimension_ + j] = entry;
        continue;
      }
      // G = Phi Ghat Psi^T                                                  theory: eq:data-law
      for (std::size_t i = 0; i < tasks_; ++i) {
        const T factor = entry * psi_[i * tasks_ + task];
        for (std::size_t k = 0; k < dimension_; ++k)
          task_weights[i * dimension_ + k] += factor * phi_[k * dimension_ + j];
      }
    }
  }
}

template <typename T>
void ContextSampler<T>::draw(const StreamKey& key, Context<T>& context, Scratch& scratch) const {
  const std::size_t stride = context.stride;
  T* covariates = context.tokens.get();
  std::uint32_t group = 0;
  group = fill_normals(key, group, context.query.get(), room<T>(dimension_));
  group = fill_normals(key, group, scratch.signal.get(), room<T>(dimension_));
  // The last group may run into the first response row, which is written below.
  group = fill_normals(key, group, covariates, room<T>(dimension_ * stride));
  draw_task_weights(scratch.signal.get(), scratch.task_weights.get());

  // y_l = s_y G^T x_l + eps_l,  y_q = s_y G^T q                             theory: eq:data-law
  for (std::size_t i = 0; i < tasks_; ++i) {
    const std::size_t begin = rotated_ ? 0 : block_begin_[i];
    const std::size_t end = rotated_ ? dimension_ : block_begin_[i + 1];
    const T* weights = scratch.task_weights.get() + i * dimension_;
    scores(covariates + begin * stride, stride, end - begin, weights + begin, dimension_, 1, context.response(i));
    T target{0};
    for (std::size_t j = begin; j < end; ++j) target += weights[j] * context.query[j];
    context.target[i] = target;
  }
  if (noise_deviation_ > T{0}) {
    fill_normals(key, group, scratch.noise.get(), room<T>(tasks_ * stride));
    for (std::size_t i = 0; i < tasks_; ++i) {
      add_scaled(scratch.noise.get() + i * stride, noise_deviation_, stride, context.response(i));
    }
  }
}

template class ContextSampler<float>;
template class ContextSampler<double>;

}  // namespace iclflow
