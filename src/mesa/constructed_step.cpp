#include <stdexcept>

#include "iclflow/mesa/one_step.hpp"

namespace iclflow {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;

/// Channels of the constructed token, counted from 0: prediction, a copy of s_t to work with, s_t, s_{t-1}.
enum Channel : Index { prediction = 0, work = 1, current = 2, previous = 3 };

/// Products of one head that are all zero.
HeadProducts nothing(const StackShape& shape) {
  return {MatrixXd::Zero(shape.width, shape.width), MatrixXd::Zero(shape.width, shape.width)};
}

void set(MatrixXd& product, int n, Channel row, Channel column, double value) {
  product.block(row * n, column * n, n, n) = value * MatrixXd::Identity(n, n);
}

StackModelWeights linear_stack(const StackShape& shape, const StackProducts& products) {
  StackShape linear = shape;
  linear.layers.assign(products.size(), LayerKind::linear);
  return stack_of(linear, products);
}

}  // namespace

StackModelWeights constructed_step(const StackShape& shape, double rate, double minus_rate_phi) {
  HeadProducts head = nothing(shape);
  const int n = shape.state_dimension;
  // P W_v = [0, eta I, -eta Phi_0] in its first row, W_k^T W_q = I in (s_{t-1}, s_t) (theory: eq:constructed-step)
  set(head.key_query, n, previous, current, 1.0);
  set(head.output_value, n, prediction, current, rate);
  set(head.output_value, n, prediction, previous, minus_rate_phi);
  return linear_stack(shape, {{head}});
}

StackModelWeights constructed_steps(const StackShape& shape, double rate, const std::vector<double>& a,
                                    const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::invalid_argument("every preconditioning step needs its a and its b");
  if (shape.mask_second) throw std::invalid_argument("preconditioning works in the second channel");
  const int n = shape.state_dimension;
  StackProducts products;
  for (std::size_t k = 0; k < a.size(); ++k) {
    HeadProducts head = nothing(shape);
    // z <- z - M_t (a z + b s_t) (theory: eq:constructed-steps)
    set(head.key_query, n, previous, work, a[k]);
    set(head.key_query, n, previous, current, b[k]);
    set(head.output_value, n, work, previous, -1.0);
    products.push_back({head});
  }
  HeadProducts last = nothing(shape);
  set(last.key_query, n, previous, work, 1.0);
  set(last.output_value, n, prediction, current, rate);
  products.push_back({last});
  return linear_stack(shape, products);
}

RecoveredStep recover_step(const StackModelWeights& trained) {
  if (trained.shape.layers != std::vector<LayerKind>{LayerKind::linear}) {
    throw std::invalid_argument("a gradient step is read from one linear layer");
  }
  RecoveredStep step;
  const int n = trained.shape.state_dimension;
  const StackProducts products = head_products(trained.shape, trained.parameters);
  for (const HeadProducts& head : products.front()) {
    const MatrixXd key_query = block_means(head.key_query, n);
    const MatrixXd output_value = block_means(head.output_value, n);
    // The second channel holds s_t too, unless it is masked.
    const double copy = trained.shape.mask_second ? 0.0 : 1.0;
    const double score = key_query(previous, current) + copy * key_query(previous, work);
    // eta = sum_h PV(1,3) KQ(4,3), -eta phi = sum_h PV(1,4) KQ(4,3) (theory: eq:recovered-step)
    const double output = output_value(prediction, current) + copy * output_value(prediction, work);
    step.rate += output * score;
    step.minus_rate_phi += output_value(prediction, previous) * score;
    double same = key_query(current, current) + key_query(previous, previous);
    if (copy > 0.0) same += key_query(work, current) + key_query(current, work) + key_query(work, work);
    // -eta phi + sum_h PV(1,3) (KQ(3,3) + KQ(4,4)) (theory: eq:effective-step)
    step.effective_minus_rate_phi += output * same;
  }
  step.effective_minus_rate_phi += step.minus_rate_phi;
  return step;
}

}  // namespace iclflow
