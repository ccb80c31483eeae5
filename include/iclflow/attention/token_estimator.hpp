#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "iclflow/attention/contexts.hpp"
#include "iclflow/attention/thread_team.hpp"
#include "iclflow/attention/weights.hpp"

namespace iclflow {

/// Acting weights of all heads packed for passes over contexts, and equally their gradient: rows padded so that every
/// loop runs over whole vectors. n = d + I token rows, np = padded(n), width = H np.
template <typename T>
struct PackedWeights {
  std::size_t heads, dimension, tasks, row;  ///< row = np
  std::size_t key_rows;                      ///< scores read token rows [0, key_rows): d when merged, n when split
  std::size_t value_begin;                   ///< values read token rows [value_begin, n): d when merged, 0 when split
  AlignedArray<T> key_query;                 ///< d x width: entry (j, h np + r) = M^h_{r j}
  AlignedArray<T> output_value;              ///< I x width: entry (i, h np + r) = A^h_{i r}

  explicit PackedWeights(const WeightLayout& layout);
  [[nodiscard]] std::size_t tokens() const { return dimension + tasks; }
  [[nodiscard]] std::size_t width() const { return heads * row; }
  [[nodiscard]] std::size_t bytes() const { return (dimension + tasks) * width() * sizeof(T); }
  void set(const ActingWeights& weights);
  void clear();

  using Block = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Eigen::OuterStride<>>;
  [[nodiscard]] Block key_query_of(std::size_t h) const;     ///< transposed M^h, d x n
  [[nodiscard]] Block output_value_of(std::size_t h) const;  ///< A^h, I x n
  [[nodiscard]] ActingWeights unpacked() const;
};

/// Forward and exact backward pass over a few contexts (theory: eq:token-gradient). What does not touch tokens is done
/// for all of them at once, as products of small matrices.
template <typename T>
class TokenPass {
 public:
  static constexpr std::size_t largest_count = 8;

  /// layout: of the weights that will be passed; stride_of_query: entries of a query's row.
  TokenPass(const PackedWeights<T>& layout, std::size_t length, std::size_t stride_of_query);

  /// Where context c's query goes before begin().
  [[nodiscard]] T* query(std::size_t c) { return query_.get() + c * query_stride_; }
  /// The directions v = M q of `count` queries.
  void begin(const PackedWeights<T>& weights, std::size_t count);
  /// Passes over the tokens of context c; returns |yhat - y_q|^2 / 2.
  double pass(const PackedWeights<T>& weights, const Context<T>& context, std::size_t c);
  /// Adds the gradient of the `count` contexts.
  void finish(std::size_t count, PackedWeights<T>& gradient) const;

  /// The three at once for one context that has its query.
  double operator()(const PackedWeights<T>& weights, const Context<T>& context, PackedWeights<T>& gradient);

 private:
  std::size_t width_, row_, tasks_, attention_stride_, query_stride_, residual_stride_;
  AlignedArray<T> query_;                        ///< q, count x query_stride
  AlignedArray<T> direction_, direction_slope_;  ///< v^h and its gradient, count x width
  AlignedArray<T> pooled_;                       ///< m^h = Z p^h, count x width
  AlignedArray<T> residual_;                     ///< yhat - y_q, count x padded(I)
  AlignedArray<T> attention_, attention_slope_;  ///< p^h and its gradient of one context, H x padded(L)
  AlignedArray<T> pooled_slope_;                 ///< gradient of m^h of one context, width
};

extern template class TokenPass<float>;
extern template class TokenPass<double>;

/// Loss and acting gradient averaged over contexts drawn token by token, streamed: memory does not grow with the
/// number of contexts. Contexts are dealt to a fixed number of partial sums, added in order: same bits for any
/// number of threads.
template <typename T>
class TokenEstimator {
 public:
  TokenEstimator(const Problem& problem, const WeightLayout& layout, ThreadTeam& team);
  ~TokenEstimator();
  struct Result {
    double loss;
    ActingWeights gradient;
  };
  /// Means over contexts (key.seed, key.stream, key.step, 0..contexts-1).
  [[nodiscard]] Result operator()(const ActingWeights& weights, const StreamKey& key, std::size_t contexts);

 private:
  struct Worker;
  double add(Worker& own, StreamKey key, std::size_t begin, std::size_t end, PackedWeights<T>& sum);

  ContextSampler<T> sampler_;
  ThreadTeam& team_;
  WeightLayout layout_;
  PackedWeights<T> weights_;
  std::vector<PackedWeights<T>> partial_gradient_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

extern template class TokenEstimator<float>;
extern template class TokenEstimator<double>;

}  // namespace iclflow
