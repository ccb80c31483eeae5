#pragma once

#include <vector>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// One context as a token array: rows x_1..x_d, then y_1..y_I; columns the L tokens. Rows lie side by side without
/// padding (stride = L), so that no number is drawn in vain.
template <typename T>
struct Context {
  std::size_t dimension, tasks, length, stride;
  AlignedArray<T> memory;  ///< normals behind G, eps and the covariates as they are drawn, then the responses
  T* signal;               ///< normals behind Ghat, d
  T* noise;                ///< normals behind eps, I x stride; null without noise
  T* tokens;               ///< (d + I) x stride
  AlignedArray<T> query;   ///< q, d
  AlignedArray<T> target;  ///< y_q, I; noise-free

  Context(std::size_t dimension, std::size_t tasks, std::size_t length, bool noisy = false);
  [[nodiscard]] T* response(std::size_t task) { return tokens + (dimension + task) * stride; }
};

/// Draws contexts of a problem (theory: eq:data-law). A context is a pure function of its key.
template <typename T>
class ContextSampler {
 public:
  explicit ContextSampler(const Problem& problem);
  [[nodiscard]] Context<T> empty() const;
  /// Entries that draw_query writes: q, then zeros up to a whole group of normals.
  [[nodiscard]] std::size_t query_room() const;
  /// What one thread needs while drawing: the rows of s_y G^T, I x d.
  using Scratch = AlignedArray<T>;
  [[nodiscard]] Scratch scratch() const;

  /// Query alone, the first numbers of the key's sequence.
  void draw_query(const StreamKey& key, T* query) const;
  /// The rest of the context, for the query that draw_query gives for this key.
  void draw_tokens(const StreamKey& key, const T* query, Context<T>& context, Scratch& task_weights) const;
  void draw(const StreamKey& key, Context<T>& context, Scratch& task_weights) const;

 private:
  void draw_task_weights(const T* signal, T* task_weights) const;

  std::size_t dimension_, tasks_, length_;
  std::vector<std::size_t> block_begin_;  ///< I + 1 entries
  std::vector<T> amplitude_;              ///< s_y sqrt(lambda_i) per coordinate
  bool rotated_;
  std::vector<T> phi_, psi_;  ///< row-major
  T noise_deviation_;
};

extern template class ContextSampler<float>;
extern template class ContextSampler<double>;

}  // namespace iclflow
