#include "stack_pass.hpp"

#include <algorithm>
#include <cmath>

namespace iclflow {

namespace {

constexpr std::size_t side = sequences_per_group;

/// Sequences of one group from rows of doubles to entries; a group that is not full is filled up with zeros, for which
/// every layer answers zero.
template <typename T>
void pack(const std::vector<double>& from, std::size_t group, std::size_t count, std::size_t row, T* to) {
  const std::size_t first = group * side;
  const std::size_t here = std::min(side, count - first);
  for (std::size_t j = 0; j < row; ++j) {
    for (std::size_t s = 0; s < here; ++s) to[j * side + s] = static_cast<T>(from[(first + s) * row + j]);
    for (std::size_t s = here; s < side; ++s) to[j * side + s] = T{0};
  }
}

}  // namespace

template <typename T>
StackPass<T>::StackPass(const StackWeights<T>& weights, int length)
    : weights_(weights),
      kernels_(stack_kernels<T>()),
      length_(static_cast<std::size_t>(length)),
      n_(static_cast<std::size_t>(weights.shape.state_dimension)),
      width_(static_cast<std::size_t>(weights.shape.width)),
      heads_(static_cast<std::size_t>(weights.shape.heads)),
      k_(static_cast<std::size_t>(weights.shape.key_dimension)),
      channels_(heads_ * k_) {
  const auto entries = [](std::size_t count) { return aligned_zeros<T>(count * side); };
  bool mesa = false;
  for (std::size_t l = 0; l < weights_.layers.size(); ++l) {
    Layer layer;
    layer.stride = weights_.layers[l].input;
    layer.input = entries(length_ * layer.stride);
    layer.heads = entries(3 * length_ * channels_);
    layer.pooled = entries(length_ * channels_);
    const bool unit = weights_.shape.normalise_keys && weights_.shape.layers[l] != LayerKind::linear;
    if (unit) layer.inverse = entries(2 * heads_ * length_);
    if (weights_.shape.layers[l] == LayerKind::mesa) {
      mesa = true;
      layer.solved = entries(length_ * channels_);
      if (weights_.shape.forgetting) layer.gamma = entries(heads_ * length_);
    }
    layers_.push_back(std::move(layer));
  }
  last_.stride = weights_.layers.back().outputs;
  last_.input = entries(length_ * last_.stride);
  states_ = entries(length_ * n_);
  prediction_ = entries(length_ * n_);
  slope_ = entries(length_ * n_);
  stream_slope_ = entries(length_ * width_);
  next_slope_ = entries(length_ * width_);
  pooled_slope_ = entries(length_ * channels_);
  head_slope_ = entries(3 * length_ * k_);
  scores_ = entries(length_ * length_);
  score_slopes_ = entries(length_ * length_);
  if (!mesa) return;
  gamma_slope_ = entries(length_);
  rho_slope_ = entries(1);
  mesa_scratch_ = entries(2 * k_ * k_ + 4 * k_ + (weights_.shape.forgetting ? 2 * length_ * k_ * k_ : 0));
}

template <typename T>
T* StackPass<T>::head(Layer& layer, std::size_t h, std::size_t which) const {
  return layer.heads.get() + (3 * h + which) * length_ * k_ * side;
}

/// Tokens of the first layer: [s_t, s_{t-1}], all that [0, s_t, s_t, s_{t-1}] holds, or E s_t with its position beside
/// it (theory: eq:constructed-tokens).
template <typename T>
void StackPass<T>::load(const StackBatch& batch, std::size_t group) {
  pack(batch.inputs, group, batch.count, length_ * n_, states_.get());
  Layer& first = layers_.front();
  T* input = first.input.get();
  if (weights_.constructed()) {
    for (std::size_t t = 0; t < length_; ++t) {
      T* token = input + t * first.stride * side;
      std::copy_n(states_.get() + t * n_ * side, n_ * side, token);
      if (t == 0) {
        std::fill_n(token + n_ * side, n_ * side, T{0});
      } else {
        std::copy_n(states_.get() + (t - 1) * n_ * side, n_ * side, token + n_ * side);
      }
    }
    return;
  }
  kernels_.project({width_, length_, n_}, {weights_.values.data() + weights_.embedding, n_, 1}, {states_.get(), n_, 1},
                   {input, 1, first.stride}, false);
  const auto positions = static_cast<double>(first.stride - width_);
  for (std::size_t t = 0; t < length_; ++t) {  // p_t[2 i] = sin(t / 10000^(2 i / P)), p_t[2 i + 1] = cos of the same
    for (std::size_t j = 0; j < first.stride - width_; ++j) {
      const double phase = static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(j - j % 2) / positions);
      std::fill_n(input + (t * first.stride + width_ + j) * side, side,
                  static_cast<T>(j % 2 == 0 ? std::sin(phase) : std::cos(phase)));
    }
  }
}

template <typename T>
void StackPass<T>::forward(const StackBatch& batch, std::size_t group) {
  load(batch, group);
  for (std::size_t l = 0; l < layers_.size(); ++l) forward_layer(l);
  if (weights_.constructed()) {
    std::copy_n(last_.input.get(), length_ * n_ * side, prediction_.get());
  } else {
    kernels_.project({n_, length_, width_}, {weights_.values.data() + weights_.readout, width_, 1},
                     {last_.input.get(), width_, 1}, {prediction_.get(), 1, n_}, false);
  }
}

/// e <- clip(e + sum_h P_h o_h) (theory: eq:stack-layer).
template <typename T>
void StackPass<T>::forward_layer(std::size_t l) {
  const PreparedLayer& at = weights_.layers[l];
  Layer& layer = layers_[l];
  for (std::size_t h = 0; h < heads_; ++h) forward_head(l, h);
  Layer& next = following(l);
  for (std::size_t t = 0; t < length_; ++t) {  // the residual
    T* to = next.input.get() + t * next.stride * side;
    const T* from = layer.input.get() + t * layer.stride * side;
    if (l > 0 || !weights_.constructed()) {
      std::copy_n(from, at.outputs * side, to);
      continue;
    }
    std::fill_n(to, at.outputs * side, T{0});
    if (at.outputs == n_) continue;
    if (!weights_.shape.mask_second) std::copy_n(from, n_ * side, to + n_ * side);
    std::copy_n(from, 2 * n_ * side, to + 2 * n_ * side);
  }
  kernels_.project({at.outputs, length_, channels_}, {weights_.values.data() + at.output, channels_, 1},
                   {layer.pooled.get(), channels_, 1}, {next.input.get(), 1, next.stride}, true);
  if (weights_.shape.clip > 0.0) {
    kernels_.clip(next.input.get(), length_ * next.stride, static_cast<T>(weights_.shape.clip));
  }
}

template <typename T>
void StackPass<T>::forward_head(std::size_t l, std::size_t h) {
  const PreparedLayer& at = weights_.layers[l];
  Layer& layer = layers_[l];
  const T* values = weights_.values.data();
  const std::size_t offsets[3] = {at.query, at.key, at.value};
  for (std::size_t which = 0; which < 3; ++which) {
    const std::size_t columns = which < 2 ? at.input : at.value_input;
    kernels_.project({k_, length_, columns}, {values + offsets[which] + h * k_ * columns, columns, 1},
                     {layer.input.get(), layer.stride, 1}, {head(layer, h, which), 1, k_}, false);
    if (which < 2 && layer.inverse) {
      kernels_.normalise(head(layer, h, which), length_, k_, layer.inverse.get() + (2 * h + which) * length_ * side);
    }
  }
  T* pooled = layer.pooled.get() + h * k_ * side;
  const LayerKind kind = weights_.shape.layers[l];
  if (kind == LayerKind::mesa) {
    if (layer.gamma) {
      T* gamma = layer.gamma.get() + h * length_ * side;
      const T* gate = values + at.gate + h * (at.value_input + 1);
      std::fill_n(gamma, length_ * side, gate[at.value_input]);
      kernels_.project({1, length_, at.value_input}, {gate, 0, 1}, {layer.input.get(), layer.stride, 1}, {gamma, 0, 1},
                       true);
      kernels_.sigmoid(gamma, length_);
    }
    // o_t = G_t (H_t + I / lambda)^-1 q_t (theory: eq:mesa-layer)
    kernels_.mesa(mesa_head(l, h), pooled, channels_);
    return;
  }
  // o_t = sum_{t' <= t} A_tt' v_t', A_tt' = k_t' . q_t or its softmax (theory: eq:causal-attention)
  kernels_.contract({length_, length_, k_}, {head(layer, h, 0), k_, 1}, {head(layer, h, 1), k_, 1},
                    {scores_.get(), length_, 1}, Reach::all, true);
  if (kind == LayerKind::softmax) {
    kernels_.softmax(scores_.get(), length_, static_cast<T>(1.0 / std::sqrt(static_cast<double>(k_))));
  } else {
    kernels_.causal(scores_.get(), length_);
  }
  kernels_.contract({length_, k_, length_}, {scores_.get(), length_, 1}, {head(layer, h, 2), 1, k_},
                    {pooled, channels_, 1}, Reach::until_row, false);
}

template <typename T>
MesaHead<T> StackPass<T>::mesa_head(std::size_t l, std::size_t h) {
  Layer& layer = layers_[l];
  const double rho = static_cast<double>(weights_.values[weights_.layers[l].rho + h]);
  const bool direct = weights_.shape.solver == MesaSolver::rank_one;
  return {length_,
          k_,
          static_cast<T>(std::exp(-rho)),
          direct ? 0 : static_cast<std::size_t>(weights_.shape.solver_iterations),
          head(layer, h, 0),
          head(layer, h, 1),
          head(layer, h, 2),
          layer.gamma ? layer.gamma.get() + h * length_ * side : nullptr,
          layer.solved.get() + h * length_ * k_ * side,
          mesa_scratch_.get()};
}

template <typename T>
void StackPass<T>::pack_targets(const StackBatch& batch, std::size_t group) {
  pack(batch.targets, group, batch.count, length_ * n_, slope_.get());
}

template <typename T>
double StackPass<T>::loss(const StackBatch& batch, std::size_t group) {
  pack_targets(batch, group);
  double sum = 0.0;
  for (std::size_t t = 0; t < length_; ++t) {
    double of_token = 0.0;
    for (std::size_t j = t * n_ * side; j < (t + 1) * n_ * side; ++j) {
      const double difference = static_cast<double>(prediction_[j]) - static_cast<double>(slope_[j]);
      of_token += difference * difference;
    }
    // l = (1/T) sum_t |s_{t+1} - f_t|^2 / 2 (theory: eq:autoregressive-loss)
    sum += 0.5 * of_token *
           (batch.position_weights.empty() ? 1.0 / static_cast<double>(length_) : batch.position_weights[t]);
  }
  return sum;
}

template <typename T>
void StackPass<T>::predictions(std::size_t group, std::size_t count, std::vector<double>& out) const {
  const std::size_t row = length_ * n_;
  for (std::size_t s = 0; s < std::min(side, count - group * side); ++s) {
    for (std::size_t j = 0; j < row; ++j) {
      out[(group * side + s) * row + j] = static_cast<double>(prediction_[j * side + s]);
    }
  }
}

template <typename T>
void StackPass<T>::stream(int layer, std::size_t group, std::size_t count, std::vector<double>& out) const {
  const bool end = layer == static_cast<int>(layers_.size());
  const Layer& at = end ? last_ : layers_[static_cast<std::size_t>(layer)];
  const bool tokens = layer == 0 && weights_.constructed();
  for (std::size_t s = 0; s < std::min(side, count - group * side); ++s) {
    for (std::size_t t = 0; t < length_; ++t) {
      double* to = out.data() + ((group * side + s) * length_ + t) * width_;
      const T* from = at.input.get() + t * at.stride * side + s;
      if (!tokens) {
        for (std::size_t c = 0; c < std::min(at.stride, width_); ++c) to[c] = static_cast<double>(from[c * side]);
        continue;
      }
      for (std::size_t i = 0; i < n_; ++i) {
        to[n_ + i] = weights_.shape.mask_second ? 0.0 : static_cast<double>(from[i * side]);
        to[2 * n_ + i] = static_cast<double>(from[i * side]);
        to[3 * n_ + i] = static_cast<double>(from[(n_ + i) * side]);
      }
    }
  }
}

template class StackPass<float>;
template class StackPass<double>;

}  // namespace iclflow
