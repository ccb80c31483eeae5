#pragma once

#include <vector>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// One context as a token array: rows x_1..x_d, then y_1..y_I; columns the L tokens, padded to `stride`.
template <typename T>
struct Context {
  std::size_t dimension, tasks, length, stride;
  AlignedArray<T> tokens;  ///< (d + I) x stride
  AlignedArray<T> query;   ///< q, d
  AlignedArray<T> target;  ///< y_q, I; noise-free

  Context(std::size_t dimension, std::size_t tasks, std::size_t length);
  [[nodiscard]] T* response(std::size_t task) { return tokens.get() + (dimension + task) * stride; }
};

/// Draws contexts of a problem (theory: eq:data-law). A context is a pure function of its key.
template <typename T>
class ContextSampler {
 public:
  explicit ContextSampler(const Problem& problem);
  [[nodiscard]] Context<T> empty() const;
  /// Scratch that one thread needs while drawing.
  struct Scratch {
    AlignedArray<T> noise, signal, task_weights;
  };
  [[nodiscard]] Scratch scratch() const;
  void draw(const StreamKey& key, Context<T>& context, Scratch& scratch) const;

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
