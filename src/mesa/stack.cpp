#include "iclflow/mesa/stack.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "stack_model.hpp"

namespace iclflow {

StackLayout StackLayout::of(const StackShape& shape) {
  StackLayout layout;
  const Eigen::Index width = shape.width;
  const Eigen::Index channels = shape.channels();
  const auto take = [&layout](Eigen::Index count) { return std::exchange(layout.size, layout.size + count); };
  if (shape.tokens == TokenKind::raw) layout.embedding = take(width * shape.state_dimension);
  for (std::size_t l = 0; l < shape.layers.size(); ++l) {
    LayerOffsets offsets;
    offsets.input = shape.width + (l == 0 ? shape.position_dimension : 0);
    offsets.query = take(channels * offsets.input);
    offsets.key = take(channels * offsets.input);
    offsets.value = take(channels * width);
    offsets.output = take(width * channels);
    if (shape.layers[l] == LayerKind::mesa) {
      offsets.rho = take(shape.heads);
      if (shape.forgetting) offsets.gate = take(shape.heads * (width + 1));
    }
    layout.layers.push_back(offsets);
  }
  if (shape.tokens == TokenKind::raw) layout.readout = take(shape.state_dimension * width);
  return layout;
}

void check(const StackShape& shape) {
  const auto require = [](bool condition, const std::string& what) {
    if (!condition) throw std::invalid_argument(what);
  };
  require(!shape.layers.empty(), "a stack needs a layer");
  require(shape.state_dimension > 0 && shape.width > 0 && shape.heads > 0 && shape.key_dimension > 0,
          "dimensions of a stack must be positive");
  require(shape.position_dimension >= 0 && shape.position_dimension % 2 == 0, "position_dimension must be even");
  require(shape.clip >= 0.0 && std::isfinite(shape.clip), "clip must not be negative");
  if (shape.tokens == TokenKind::constructed) {
    require(shape.width == 4 * shape.state_dimension, "constructed tokens have four channels of the state's dimension");
    require(shape.position_dimension == 0, "constructed tokens have no positions");
  } else {
    require(!shape.mask_second, "raw tokens have no second channel to mask");
  }
  require(shape.solver_iterations > 0, "solver_iterations must be positive");
  require(!shape.forgetting || shape.solver == MesaSolver::conjugate_gradients,
          "forgetting needs conjugate gradients: the rank-one recursion would forget its prior too");
}

std::unique_ptr<Stack> make_stack(const StackShape& shape, StackPrecision precision, int threads) {
  check(shape);
  if (precision == StackPrecision::single_precision) return std::make_unique<StackModel<float>>(shape, threads);
  return std::make_unique<StackModel<double>>(shape, threads);
}

}  // namespace iclflow
