#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "iclflow/attention/contexts.hpp"
#include "iclflow/attention/thread_team.hpp"
#include "iclflow/attention/weights.hpp"

namespace iclflow {

/// Acting weights of all heads packed for one pass over a context, and equally their gradient: rows padded so that
/// every loop runs over whole vectors. n = d + I token rows, np = padded(n).
template <typename T>
struct PackedWeights {
  std::size_t heads, dimension, tasks, row;  ///< row = np
  std::size_t key_rows;                      ///< scores read token rows [0, key_rows): d when merged, n when split
  std::size_t value_begin;                   ///< values read token rows [value_begin, n): d when merged, 0 when split
  AlignedArray<T> key_query;                 ///< d x (H np): entry (j, h np + r) = M^h_{r j}
  AlignedArray<T> output_value;              ///< (H I) x np: row h I + i = A^h_i

  explicit PackedWeights(const WeightLayout& layout);
  [[nodiscard]] std::size_t tokens() const { return dimension + tasks; }
  [[nodiscard]] std::size_t key_query_size() const { return dimension * heads * row; }
  [[nodiscard]] std::size_t output_value_size() const { return heads * tasks * row; }
  void set(const ActingWeights& weights);
  void clear();
  void add_to(ActingWeights& sum) const;
};

/// What one pass needs besides weights and context.
template <typename T>
struct PassScratch {
  AlignedArray<T> direction, direction_slope;  ///< v^h and its gradient, H x np
  AlignedArray<T> attention, attention_slope;  ///< p^h and its gradient, H x stride
  AlignedArray<T> pooled, pooled_slope;        ///< m^h = Z p^h and its gradient, H x np
  AlignedArray<T> residual;                    ///< yhat - y_q, I
  PassScratch(const PackedWeights<T>& weights, std::size_t stride);
};

/// Forward and exact backward pass over one context: returns |yhat - y_q|^2 / 2 and adds its gradient.
/// theory: eq:token-gradient
template <typename T>
double token_pass(const PackedWeights<T>& weights, const Context<T>& context, PassScratch<T>& scratch,
                  PackedWeights<T>& gradient);

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
