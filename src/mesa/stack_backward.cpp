// The backward half of StackPass: slopes of the loss, layer by layer, by hand (theory/13-stack.md).
#include <algorithm>
#include <cmath>

#include "stack_pass.hpp"

namespace iclflow {

namespace {
constexpr std::size_t side = sequences_per_group;
}

template <typename T>
void StackPass<T>::backward(const StackBatch& batch, std::size_t group, double scale, std::vector<T>& slopes,
                            std::vector<double>* input_gradient) {
  pack_targets(batch, group);
  for (std::size_t t = 0; t < length_; ++t) {
    const double weight =
        batch.position_weights.empty() ? 1.0 / static_cast<double>(length_) : batch.position_weights[t];
    const T factor = static_cast<T>(weight * scale);
    for (std::size_t j = t * n_ * side; j < (t + 1) * n_ * side; ++j) slope_[j] = factor * (prediction_[j] - slope_[j]);
  }
  const T* values = weights_.values.data();
  if (weights_.constructed()) {
    std::copy_n(slope_.get(), length_ * n_ * side, stream_slope_.get());
  } else {
    kernels_.outer({n_, width_, length_}, {slope_.get(), 1, n_}, {last_.input.get(), 1, width_},
                   {slopes.data() + weights_.readout, width_, 1});
    kernels_.project({width_, length_, n_}, {values + weights_.readout, 1, width_}, {slope_.get(), n_, 1},
                     {stream_slope_.get(), 1, width_}, false);
  }
  const bool to_input = input_gradient != nullptr;
  for (std::size_t l = layers_.size(); l-- > 0;) backward_layer(l, slopes, to_input);
  if (!weights_.constructed()) {
    kernels_.outer({width_, n_, length_}, {stream_slope_.get(), 1, width_}, {states_.get(), 1, n_},
                   {slopes.data() + weights_.embedding, n_, 1});
  }
  if (to_input) store_inputs(group, batch.count, *input_gradient);
}

/// From the slopes of the stream after layer l (in stream_slope_) to those before it.
template <typename T>
void StackPass<T>::backward_layer(std::size_t l, std::vector<T>& slopes, bool to_input) {
  const PreparedLayer& at = weights_.layers[l];
  Layer& layer = layers_[l];
  const T* output = weights_.values.data() + at.output;
  if (weights_.shape.clip > 0.0) {
    kernels_.clip_backward(following(l).input.get(), stream_slope_.get(), length_ * at.outputs,
                           static_cast<T>(weights_.shape.clip));
  }
  kernels_.outer({at.outputs, channels_, length_}, {stream_slope_.get(), 1, at.outputs},
                 {layer.pooled.get(), 1, channels_}, {slopes.data() + at.output, channels_, 1});
  kernels_.project({channels_, length_, at.outputs}, {output, 1, channels_}, {stream_slope_.get(), at.outputs, 1},
                   {pooled_slope_.get(), 1, channels_}, false);
  const bool tokens = l == 0 && weights_.constructed();
  const std::size_t stride = at.value_input;
  for (std::size_t t = 0; t < length_; ++t) {  // the residual
    T* to = next_slope_.get() + t * stride * side;
    const T* from = stream_slope_.get() + t * at.outputs * side;
    std::fill_n(to, stride * side, T{0});
    if (!tokens) {
      std::copy_n(from, at.outputs * side, to);
    } else if (at.outputs > n_) {  // channels 3 and 4, and 2, which is s_t too
      std::copy_n(from + 2 * n_ * side, 2 * n_ * side, to);
      for (std::size_t j = 0; j < n_ * side && !weights_.shape.mask_second; ++j) to[j] += from[n_ * side + j];
    }
  }
  for (std::size_t h = 0; h < heads_; ++h) backward_head(l, h, slopes, !tokens || to_input);
  std::swap(stream_slope_, next_slope_);
}

template <typename T>
void StackPass<T>::backward_head(std::size_t l, std::size_t h, std::vector<T>& slopes, bool to_input) {
  const PreparedLayer& at = weights_.layers[l];
  Layer& layer = layers_[l];
  if (weights_.shape.layers[l] == LayerKind::mesa) {
    mesa_backward(l, h, slopes, to_input);
  } else {
    attention_backward(l, h);
  }
  const std::size_t offsets[3] = {at.query, at.key, at.value};
  for (std::size_t which = 0; which < 3; ++which) {
    T* slope = head_slope_.get() + which * length_ * k_ * side;
    if (which < 2 && layer.inverse) {
      kernels_.normalise_backward(head(layer, h, which), slope, length_, k_,
                                  layer.inverse.get() + (2 * h + which) * length_ * side);
    }
    const std::size_t columns = which < 2 ? at.input : at.value_input;
    const std::size_t matrix = offsets[which] + h * k_ * columns;
    kernels_.outer({k_, columns, length_}, {slope, 1, k_}, {layer.input.get(), 1, layer.stride},
                   {slopes.data() + matrix, columns, 1});
    if (!to_input) continue;
    kernels_.project({at.value_input, length_, k_}, {weights_.values.data() + matrix, 1, columns}, {slope, k_, 1},
                     {next_slope_.get(), 1, at.value_input}, true);
  }
}

template <typename T>
void StackPass<T>::attention_backward(std::size_t l, std::size_t h) {
  Layer& layer = layers_[l];
  const T* query = head(layer, h, 0);
  const T* key = head(layer, h, 1);
  const T* value = head(layer, h, 2);
  const T* pooled = pooled_slope_.get() + h * k_ * side;
  const bool softmax = weights_.shape.layers[l] == LayerKind::softmax;
  const T scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(k_)));
  // Formed again: cheaper than fetching them from far memory.
  kernels_.contract({length_, length_, k_}, {query, k_, 1}, {key, k_, 1}, {scores_.get(), length_, 1}, Reach::all,
                    true);
  kernels_.contract({length_, length_, k_}, {pooled, channels_, 1}, {value, k_, 1}, {score_slopes_.get(), length_, 1},
                    Reach::all, true);
  if (softmax) {
    kernels_.softmax(scores_.get(), length_, scale);
    kernels_.softmax_backward(scores_.get(), score_slopes_.get(), length_, scale);
  } else {
    kernels_.causal(scores_.get(), length_);
    kernels_.causal(score_slopes_.get(), length_);
  }
  T* slopes = head_slope_.get();
  const std::size_t size = length_ * k_ * side;
  const Extent extent{length_, k_, length_};
  kernels_.contract(extent, {score_slopes_.get(), length_, 1}, {key, 1, k_}, {slopes, k_, 1}, Reach::until_row, false);
  kernels_.contract(extent, {score_slopes_.get(), 1, length_}, {query, 1, k_}, {slopes + size, k_, 1}, Reach::from_row,
                    false);
  kernels_.contract(extent, {scores_.get(), 1, length_}, {pooled, 1, channels_}, {slopes + 2 * size, k_, 1},
                    Reach::from_row, false);
}

/// dq = (H + I / lambda)^-1 G^T e, dk = (D_H + D_H^T) k + D_G^T v, dv = D_G k (theory: eq:mesa-backward).
template <typename T>
void StackPass<T>::mesa_backward(std::size_t l, std::size_t h, std::vector<T>& slopes, bool to_input) {
  const PreparedLayer& at = weights_.layers[l];
  Layer& layer = layers_[l];
  const std::size_t size = length_ * k_ * side;
  T* of_head = head_slope_.get();
  kernels_.mesa_backward(mesa_head(l, h), {pooled_slope_.get() + h * k_ * side, channels_, of_head, of_head + size,
                                           of_head + 2 * size, gamma_slope_.get(), rho_slope_.get()});
  for (std::size_t s = 0; s < side; ++s) slopes[at.rho + h] += rho_slope_[s];
  if (!layer.gamma) return;
  kernels_.sigmoid_backward(layer.gamma.get() + h * length_ * side, gamma_slope_.get(), length_);
  const std::size_t gate = at.gate + h * (at.value_input + 1);
  kernels_.outer({1, at.value_input, length_}, {gamma_slope_.get(), 0, 1}, {layer.input.get(), 1, layer.stride},
                 {slopes.data() + gate, 0, 1});
  for (std::size_t j = 0; j < length_ * side; ++j) slopes[gate + at.value_input] += gamma_slope_[j];
  if (!to_input) return;
  kernels_.project({at.value_input, length_, 1}, {weights_.values.data() + gate, 1, 0}, {gamma_slope_.get(), 1, 0},
                   {next_slope_.get(), 1, at.value_input}, true);
}

/// From the slopes of the tokens (in stream_slope_) to those of the states they are made of.
template <typename T>
void StackPass<T>::store_inputs(std::size_t group, std::size_t count, std::vector<double>& out) {
  if (!weights_.constructed()) {
    kernels_.project({n_, length_, width_}, {weights_.values.data() + weights_.embedding, 1, n_},
                     {stream_slope_.get(), width_, 1}, {slope_.get(), 1, n_}, false);
  } else {
    for (std::size_t t = 0; t < length_; ++t) {
      const T* now = stream_slope_.get() + t * 2 * n_ * side;
      const T* later = now + 3 * n_ * side;  // s_t is the last channel of token t + 1
      for (std::size_t j = 0; j < n_ * side; ++j) {
        slope_[t * n_ * side + j] = now[j] + (t + 1 < length_ ? later[j] : T{0});
      }
    }
  }
  for (std::size_t s = 0; s < std::min(side, count - group * side); ++s) {
    for (std::size_t j = 0; j < length_ * n_; ++j) {
      out[(group * side + s) * length_ * n_ + j] = static_cast<double>(slope_[j * side + s]);
    }
  }
}

template void StackPass<float>::backward(const StackBatch&, std::size_t, double, std::vector<float>&,
                                         std::vector<double>*);
template void StackPass<double>::backward(const StackBatch&, std::size_t, double, std::vector<double>&,
                                          std::vector<double>*);

}  // namespace iclflow
