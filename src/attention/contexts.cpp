#include "iclflow/attention/contexts.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/random/normals.hpp"

namespace iclflow {

template <typename T>
Context<T>::Context(std::size_t d, std::size_t i, std::size_t l, bool noisy)
    : dimension(d),
      tasks(i),
      length(l),
      stride(l),
      query(aligned_zeros<T>(whole_groups<T>(d))),
      target(aligned_zeros<T>(i)) {
  // Covariates begin aligned: where L is a multiple of a vector, all their rows do.
  const std::size_t noise_begin = padded(d);
  const std::size_t tokens_begin = noise_begin + (noisy ? padded(i * l) : 0);
  // The last group of normals, and vectors that run past the last row, end in the room behind.
  memory = aligned_zeros<T>(tokens_begin + (d + i) * l + normals_per_group<T> + token_padding);
  signal = memory.get();
  noise = noisy ? memory.get() + noise_begin : nullptr;
  tokens = memory.get() + tokens_begin;
}

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
  return Context<T>(dimension_, tasks_, length_, noise_deviation_ > T{0});
}

template <typename T>
std::size_t ContextSampler<T>::query_room() const {
  return whole_groups<T>(dimension_);
}

template <typename T>
typename ContextSampler<T>::Scratch ContextSampler<T>::scratch() const {
  return aligned_zeros<T>(tasks_ * dimension_ + token_padding);
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
void ContextSampler<T>::draw_query(const StreamKey& key, T* query) const {
  fill_normals(key, 0, query, query_room());
  std::fill(query + dimension_, query + query_room(), T{0});
}

template <typename T>
void ContextSampler<T>::draw_tokens(const StreamKey& key, const T* query, Context<T>& context,
                                    Scratch& task_weights) const {
  const std::size_t stride = context.stride;
  const auto first_group = static_cast<std::uint32_t>(query_room() / normals_per_group<T>);
  const auto covariates_end = static_cast<std::size_t>(context.response(0) - context.memory.get());
  fill_normals(key, first_group, context.memory.get(), whole_groups<T>(covariates_end));
  draw_task_weights(context.signal, task_weights.get());

  // y_l = s_y G^T x_l + eps_l,  y_q = s_y G^T q; zeros stand behind q       theory: eq:data-law
  for (std::size_t i = 0; i < tasks_; ++i) {
    const std::size_t begin = rotated_ ? 0 : block_begin_[i];
    const std::size_t end = rotated_ ? dimension_ : block_begin_[i + 1];
    const T* weights = task_weights.get() + i * dimension_;
    const T* noise = context.noise == nullptr ? nullptr : context.noise + i * stride;
    // in the order of the rows: a row's last vector runs into the next one
    kernels<T>().responses(context.tokens + begin * stride, stride, length_, end - begin, weights + begin, noise,
                           noise_deviation_, context.response(i));
  }
  kernels<T>().pool(task_weights.get(), dimension_, dimension_, tasks_, query, query_room(), 1, context.target.get(),
                    tasks_);
}

template <typename T>
void ContextSampler<T>::draw(const StreamKey& key, Context<T>& context, Scratch& task_weights) const {
  draw_query(key, context.query.get());
  draw_tokens(key, context.query.get(), context, task_weights);
}

template class ContextSampler<float>;
template class ContextSampler<double>;

}  // namespace iclflow
