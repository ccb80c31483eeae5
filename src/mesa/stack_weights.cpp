#include <algorithm>
#include <utility>

#include "stack_pass.hpp"

namespace iclflow {

template <typename T>
StackWeights<T>::StackWeights(const StackShape& stack, const StackLayout& of) : shape(stack), layout(of) {
  std::size_t size = 0;
  const auto take = [&size](std::size_t count) { return std::exchange(size, size + count); };
  const auto n = static_cast<std::size_t>(shape.state_dimension);
  const auto width = static_cast<std::size_t>(shape.width);
  const auto channels = static_cast<std::size_t>(shape.channels());
  const auto heads = static_cast<std::size_t>(shape.heads);
  if (!constructed()) embedding = take(width * n);
  for (std::size_t l = 0; l < shape.layers.size(); ++l) {
    PreparedLayer layer;
    const bool distinct = constructed() && l == 0;
    layer.input = distinct ? 2 * n : static_cast<std::size_t>(layout.layers[l].input);
    layer.value_input = distinct ? 2 * n : width;
    layer.outputs = constructed() && l + 1 == shape.layers.size() ? n : width;
    layer.query = take(channels * layer.input);
    layer.key = take(channels * layer.input);
    layer.value = take(channels * layer.value_input);
    layer.output = take(layer.outputs * channels);
    if (shape.layers[l] == LayerKind::mesa) {
      layer.rho = take(heads);
      if (shape.forgetting) layer.gate = take(heads * (layer.value_input + 1));
    }
    layers.push_back(layer);
  }
  if (!constructed()) readout = take(n * width);
  values.resize(size);
}

template <typename T>
template <typename Visit>
void StackWeights<T>::visit(const Visit& visit) const {
  const auto n = static_cast<std::size_t>(shape.state_dimension);
  const auto plain = [&](std::size_t prepared, Eigen::Index parameter, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) visit(prepared + i, parameter + static_cast<Eigen::Index>(i));
  };
  // A matrix on the stream; in the first layer channels 2 and 3 are both s_t, channel 1 is zero.
  const auto on_stream = [&](bool distinct, std::size_t prepared, Eigen::Index parameter, std::size_t columns) {
    if (!distinct) return plain(prepared, parameter, columns);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = parameter + static_cast<Eigen::Index>(i);
      const auto channel = static_cast<Eigen::Index>(n);
      if (!shape.mask_second) visit(prepared + i, at + channel);
      visit(prepared + i, at + 2 * channel);
      visit(prepared + n + i, at + 3 * channel);
    }
  };
  if (!constructed()) plain(embedding, layout.embedding, static_cast<std::size_t>(shape.width) * n);
  const auto channels = static_cast<std::size_t>(shape.channels());
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const PreparedLayer& to = layers[l];
    const LayerOffsets& from = layout.layers[l];
    const bool distinct = constructed() && l == 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const auto row = static_cast<Eigen::Index>(c);
      on_stream(distinct, to.query + c * to.input, from.query + row * from.input, to.input);
      on_stream(distinct, to.key + c * to.input, from.key + row * from.input, to.input);
      on_stream(distinct, to.value + c * to.value_input, from.value + row * shape.width, to.value_input);
    }
    plain(to.output, from.output, to.outputs * channels);
    if (shape.layers[l] != LayerKind::mesa) continue;
    plain(to.rho, from.rho, static_cast<std::size_t>(shape.heads));
    if (!shape.forgetting) continue;
    for (std::size_t h = 0; h < static_cast<std::size_t>(shape.heads); ++h) {
      const Eigen::Index row = from.gate + static_cast<Eigen::Index>(h) * (shape.width + 1);
      const std::size_t prepared = to.gate + h * (to.value_input + 1);
      on_stream(distinct, prepared, row, to.value_input);
      visit(prepared + to.value_input, row + shape.width);
    }
  }
  if (!constructed()) plain(readout, layout.readout, n * static_cast<std::size_t>(shape.width));
}

template <typename T>
void StackWeights<T>::set(const Eigen::VectorXd& parameters) {
  std::fill(values.begin(), values.end(), T{0});
  visit(
      [&](std::size_t prepared, Eigen::Index parameter) { values[prepared] += static_cast<T>(parameters[parameter]); });
}

template <typename T>
void StackWeights<T>::add_to(const std::vector<T>& slopes, Eigen::VectorXd& gradient) const {
  visit([&](std::size_t prepared, Eigen::Index parameter) {
    gradient[parameter] += static_cast<double>(slopes[prepared]);
  });
}

template struct StackWeights<float>;
template struct StackWeights<double>;

}  // namespace iclflow
