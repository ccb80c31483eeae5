#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "iclflow/mesa/stack.hpp"

// Stacks against the same models written in PyTorch (tests/golden/stack_torch.py), with its automatic derivatives.

namespace {

using iclflow::LayerKind;
using nlohmann::json;

/// The generator of the golden file's inputs and parameters.
std::vector<double> fill(std::size_t size, double scale, std::uint64_t seed) {
  std::vector<double> values;
  std::uint64_t x = seed;
  for (std::size_t i = 0; i < size + 3; ++i) {
    x = (1103515245 * x + 12345) % 2147483648ULL;
    if (i >= 3) values.push_back(scale * (2.0 * static_cast<double>(x) / 2147483648.0 - 1.0));
  }
  return values;
}

iclflow::StackShape shape_of(const json& j, int state_dimension) {
  iclflow::StackShape shape;
  shape.layers.clear();
  for (const std::string name : j.at("layers")) {
    shape.layers.push_back(name == "linear" ? LayerKind::linear
                           : name == "mesa" ? LayerKind::mesa
                                            : LayerKind::softmax);
  }
  shape.state_dimension = state_dimension;
  shape.tokens = j.at("tokens") == "raw" ? iclflow::TokenKind::raw : iclflow::TokenKind::constructed;
  shape.width = j.at("width").get<int>();
  shape.position_dimension = j.at("position_dimension").get<int>();
  shape.heads = j.at("heads").get<int>();
  shape.key_dimension = j.at("key_dimension").get<int>();
  shape.clip = j.at("clip").get<double>();
  shape.mask_second = j.at("mask_second").get<bool>();
  shape.normalise_keys = j.at("normalise_keys").get<bool>();
  shape.forgetting = j.at("forgetting").get<bool>();
  if (shape.forgetting) shape.solver = iclflow::MesaSolver::conjugate_gradients;
  return shape;
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

template <typename Values>
std::vector<double> tail(const Values& values, std::size_t count) {
  return {values.data() + values.size() - static_cast<std::ptrdiff_t>(count), values.data() + values.size()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack_torch)

// Both sum some 10^4 terms in double precision: 1e-12 of the largest entry, times a condition number of up to 10^2
// where equations are solved.
BOOST_AUTO_TEST_CASE(losses_slopes_and_predictions_are_those_of_pytorch) {
  std::ifstream in(ICLFLOW_SOURCE_DIR "/tests/golden/stack_torch.json");
  const json golden = json::parse(in);
  const int n = golden.at("state_dimension").get<int>();
  iclflow::StackBatch batch;
  batch.count = golden.at("count").get<std::size_t>();
  batch.length = golden.at("length").get<int>();
  const std::size_t row = static_cast<std::size_t>(batch.length * n);
  batch.inputs = fill(batch.count * row, 1.0, golden.at("input_seed").get<std::uint64_t>());
  batch.targets = fill(batch.count * row, 1.0, golden.at("target_seed").get<std::uint64_t>());
  for (const json& one : golden.at("cases")) {
    BOOST_TEST_CONTEXT(one.at("name").get<std::string>()) {
      const iclflow::StackShape shape = shape_of(one, n);
      const auto stack = iclflow::make_stack(shape, iclflow::StackPrecision::double_precision);
      const auto parameters =
          fill(one.at("parameter_count").get<std::size_t>(), one.at("parameter_scale").get<double>(),
               golden.at("parameter_seed").get<std::uint64_t>());
      BOOST_REQUIRE(static_cast<Eigen::Index>(parameters.size()) == stack->layout().size);
      const Eigen::VectorXd theta =
          Eigen::Map<const Eigen::VectorXd>(parameters.data(), static_cast<Eigen::Index>(parameters.size()));
      batch.position_weights = one.at("position_weights").get<std::vector<double>>();
      Eigen::VectorXd gradient;
      std::vector<double> of_inputs;
      const double loss = stack->gradient(theta, batch, gradient, &of_inputs);
      const auto expected = one.at("gradient").get<std::vector<double>>();
      BOOST_TEST(std::abs(loss - one.at("loss").get<double>()) < 1e-10 * loss);
      BOOST_TEST(largest_difference(tail(gradient, parameters.size()), expected) < 1e-10 * largest(expected));
      const auto last = one.at("last_predictions").get<std::vector<double>>();
      BOOST_TEST(largest_difference(tail(stack->predictions(theta, batch), row), last) < 1e-10 * largest(last));
      const auto slopes = one.at("input_gradient_of_last").get<std::vector<double>>();
      BOOST_TEST(largest_difference(tail(of_inputs, row), slopes) < 1e-10 * largest(slopes));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
