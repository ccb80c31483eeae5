#pragma once

#include <vector>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/mesa/stack.hpp"
#include "stack_kernels.hpp"

namespace iclflow {

/// Where a layer's prepared matrices stand; as LayerOffsets, but of what is really multiplied: the first layer on
/// constructed tokens sees 2 n distinct inputs (s_t, s_{t-1}), the last one forms n outputs.
struct PreparedLayer {
  std::size_t query = 0, key = 0, value = 0, output = 0, rho = 0, gate = 0;
  std::size_t input = 0;        ///< columns of query and key
  std::size_t value_input = 0;  ///< columns of value; also of gate, which has its bias besides
  std::size_t outputs = 0;      ///< rows of output
};

/// The parameters in the arithmetic of a pass.
template <typename T>
struct StackWeights {
  StackShape shape;
  StackLayout layout;
  std::size_t embedding = 0, readout = 0;
  std::vector<PreparedLayer> layers;
  std::vector<T> values;

  StackWeights(const StackShape& shape, const StackLayout& layout);
  void set(const Eigen::VectorXd& parameters);
  /// Adds the gradient of the prepared values to that of the parameters: the transpose of set().
  void add_to(const std::vector<T>& slopes, Eigen::VectorXd& gradient) const;

  [[nodiscard]] bool constructed() const { return shape.tokens == TokenKind::constructed; }

 private:
  template <typename Visit>
  void visit(const Visit& visit) const;  ///< visit(prepared, parameter) for every pair that belongs together
};

/// One group of sequences, forward and back, with everything that has to be remembered between.
template <typename T>
class StackPass {
 public:
  StackPass(const StackWeights<T>& weights, int length);

  [[nodiscard]] int length() const { return static_cast<int>(length_); }
  void forward(const StackBatch& batch, std::size_t group);
  /// Sum over the group's sequences of sum_t w_t |target - f|^2 / 2.
  [[nodiscard]] double loss(const StackBatch& batch, std::size_t group);
  /// Adds d (loss of the group) * scale to slopes (prepared weights), and writes d / d input, where wanted.
  void backward(const StackBatch& batch, std::size_t group, double scale, std::vector<T>& slopes,
                std::vector<double>* input_gradient);
  void predictions(std::size_t group, std::size_t count, std::vector<double>& out) const;
  void stream(int layer, std::size_t group, std::size_t count, std::vector<double>& out) const;

 private:
  struct Layer {
    AlignedArray<T> input;    ///< tokens x stride: what query, key and value are formed of
    AlignedArray<T> heads;    ///< head, (query, key, value), token, k
    AlignedArray<T> pooled;   ///< Z: token x channels
    AlignedArray<T> inverse;  ///< lengths of queries and keys, when normalised: head, 2, token
    AlignedArray<T> solved;   ///< mesa: head, token, k
    AlignedArray<T> gamma;    ///< mesa with forgetting: head, token
    std::size_t stride = 0;
  };

  [[nodiscard]] T* head(Layer& layer, std::size_t h, std::size_t which) const;
  void load(const StackBatch& batch, std::size_t group);
  void forward_layer(std::size_t l);
  void forward_head(std::size_t l, std::size_t h);
  void backward_layer(std::size_t l, std::vector<T>& slopes, bool to_input);
  void backward_head(std::size_t l, std::size_t h, std::vector<T>& slopes, bool to_input);
  void attention_backward(std::size_t l, std::size_t h);
  void mesa_backward(std::size_t l, std::size_t h, std::vector<T>& slopes, bool to_input);
  void pack_targets(const StackBatch& batch, std::size_t group);
  void store_inputs(std::size_t group, std::size_t count, std::vector<double>& out);
  [[nodiscard]] MesaHead<T> mesa_head(std::size_t l, std::size_t h);
  [[nodiscard]] Layer& following(std::size_t l) { return l + 1 < layers_.size() ? layers_[l + 1] : last_; }

  const StackWeights<T>& weights_;
  const StackKernels<T>& kernels_;
  std::size_t length_, n_, width_, heads_, k_, channels_;
  std::vector<Layer> layers_;
  Layer last_;                                                         ///< only .input: the stream after the last layer
  AlignedArray<T> states_;                                             ///< s_t: token x n
  AlignedArray<T> prediction_, slope_;                                 ///< token x n
  AlignedArray<T> stream_slope_, next_slope_;                          ///< token x width
  AlignedArray<T> pooled_slope_, head_slope_, scores_, score_slopes_;  ///< token x channels; 3 token x k; token^2
  AlignedArray<T> gamma_slope_, rho_slope_, mesa_scratch_;
};

extern template struct StackWeights<float>;
extern template struct StackWeights<double>;
}  // namespace iclflow
