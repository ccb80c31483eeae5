// The stack's forward and backward passes: slopes against central differences, the mesa layer against an explicit
// inverse, one precision against the other.
#include "iclflow/mesa/stack.hpp"

#include <Eigen/Dense>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "iclflow/random/stream.hpp"

using namespace iclflow;

namespace {

StackShape small(std::vector<LayerKind> layers, TokenKind tokens) {
  StackShape shape;
  shape.layers = std::move(layers);
  shape.tokens = tokens;
  shape.state_dimension = 3;
  shape.width = 12;
  shape.heads = 2;
  shape.key_dimension = 4;
  if (tokens == TokenKind::raw) shape.position_dimension = 6;
  return shape;
}

std::vector<double> normals(std::uint32_t context, std::size_t count, double scale) {
  NormalStream stream({7, Stream::initial, 0, context});
  std::vector<double> values(count);
  for (double& value : values) value = scale * stream();
  return values;
}

StackBatch batch_of(const StackShape& shape, std::size_t count = 19, int length = 7) {
  StackBatch batch;
  batch.count = count;
  batch.length = length;
  const std::size_t size = count * static_cast<std::size_t>(length * shape.state_dimension);
  batch.inputs = normals(1, size, 0.7);
  batch.targets = normals(2, size, 0.7);
  return batch;
}

Eigen::VectorXd parameters_of(const StackShape& shape, double scale = 0.3) {
  const std::vector<double> values = normals(3, static_cast<std::size_t>(StackLayout::of(shape).size), scale);
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

struct Case {
  std::string name;
  StackShape shape;
};

std::vector<Case> cases() {
  using enum LayerKind;
  std::vector<Case> all{{"linear", small({linear}, TokenKind::constructed)},
                        {"two linear", small({linear, linear}, TokenKind::constructed)},
                        {"three linear, clipped", small({linear, linear, linear}, TokenKind::constructed)},
                        {"two linear, without the second channel", small({linear, linear}, TokenKind::constructed)},
                        {"softmax, raw", small({softmax, softmax}, TokenKind::raw)},
                        {"mesa", small({mesa}, TokenKind::constructed)},
                        {"softmax and mesa, raw, unit keys", small({softmax, mesa}, TokenKind::raw)},
                        {"mesa and linear by conjugate gradients", small({mesa, linear}, TokenKind::constructed)},
                        {"mesa that forgets", small({mesa, linear}, TokenKind::constructed)},
                        {"raw mesa that forgets", small({mesa, mesa}, TokenKind::raw)}};
  all[0].shape.mask_second = true;
  all[2].shape.clip = 0.6;
  all[3].shape.mask_second = true;
  all[6].shape.normalise_keys = true;
  all[6].shape.clip = 2.0;
  for (std::size_t i = 7; i < 10; ++i) all[i].shape.solver = MesaSolver::conjugate_gradients;
  all[7].shape.solver_iterations = 12;
  for (std::size_t i = 8; i < 10; ++i) all[i].shape.forgetting = true;
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack)

// Central differences of step h err by h^2 f'''/6 and by rounding eps L / h: with h = 1e-5 both are below 1e-9 of
// slopes of order one. A clipped entry within h of its limit would break this; there is none here.
BOOST_AUTO_TEST_CASE(slopes_equal_central_differences) {
  for (const auto& [name, shape] : cases()) {
    BOOST_TEST_CONTEXT(name) {
      const auto model = make_stack(shape, StackPrecision::double_precision);
      StackBatch batch = batch_of(shape);
      batch.position_weights = {0.0, 0.3, 0.1, 0.2, 0.05, 0.3, 0.4};
      const Eigen::VectorXd theta = parameters_of(shape);
      Eigen::VectorXd gradient;
      std::vector<double> of_inputs;
      const double loss = model->gradient(theta, batch, gradient, &of_inputs);
      BOOST_TEST(loss == model->loss(theta, batch));
      const double h = 1e-5;
      const double error = 1e-8 * (1.0 + gradient.lpNorm<Eigen::Infinity>()) + 1.8e-15 * loss / h;
      double worst = 0.0;
      for (Eigen::Index i = 0; i < theta.size(); i += 5) {
        Eigen::VectorXd high = theta;
        Eigen::VectorXd low = theta;
        high[i] += h;
        low[i] -= h;
        const double slope = (model->loss(high, batch) - model->loss(low, batch)) / (2.0 * h);
        worst = std::max(worst, std::abs(slope - gradient[i]));
      }
      BOOST_TEST(worst < error);
      for (std::size_t i = 0; i < of_inputs.size(); i += 31) {
        StackBatch high = batch;
        StackBatch low = batch;
        high.inputs[i] += h;
        low.inputs[i] -= h;
        const double slope = (model->loss(theta, high) - model->loss(theta, low)) / (2.0 * h);
        BOOST_TEST(std::abs(slope - of_inputs[i]) < error);
      }
    }
  }
}

// One mesa layer, written with an explicit inverse: o_t = G_t (H_t + I / lambda)^-1 q_t. Both are accurate to rounding
// times the condition number, which is below 1e3 here.
BOOST_AUTO_TEST_CASE(mesa_layer_equals_explicit_least_squares) {
  for (const MesaSolver solver : {MesaSolver::rank_one, MesaSolver::conjugate_gradients}) {
    StackShape shape = small({LayerKind::mesa}, TokenKind::constructed);
    shape.heads = 1;
    shape.solver = solver;
    shape.solver_iterations = 15;
    const StackBatch batch = batch_of(shape, 3, 9);
    const Eigen::VectorXd theta = parameters_of(shape);
    const auto model = make_stack(shape, StackPrecision::double_precision);
    const std::vector<double> found = model->predictions(theta, batch);
    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const LayerOffsets at = model->layout().layers[0];
    const Eigen::Map<const Rows> query(theta.data() + at.query, 4, 12), key(theta.data() + at.key, 4, 12),
        value(theta.data() + at.value, 4, 12), output(theta.data() + at.output, 12, 4);
    for (std::size_t s = 0; s < batch.count; ++s) {
      Eigen::MatrixXd h = std::exp(-theta[at.rho]) * Eigen::MatrixXd::Identity(4, 4);
      Eigen::MatrixXd g = Eigen::MatrixXd::Zero(4, 4);
      Eigen::Vector3d before = Eigen::Vector3d::Zero();
      for (int t = 0; t < batch.length; ++t) {
        const Eigen::Map<const Eigen::Vector3d> state(
            batch.inputs.data() + (s * static_cast<std::size_t>(batch.length) + static_cast<std::size_t>(t)) * 3);
        Eigen::VectorXd token(12);
        token << Eigen::Vector3d::Zero(), state, state, before;
        before = state;
        const Eigen::VectorXd k = key * token;
        h += k * k.transpose();
        g += value * token * k.transpose();
        const Eigen::VectorXd out = output * (g * h.ldlt().solve(query * token));
        for (int i = 0; i < 3; ++i) {
          const std::size_t place = (s * static_cast<std::size_t>(batch.length) + static_cast<std::size_t>(t)) * 3 +
                                    static_cast<std::size_t>(i);
          BOOST_TEST(std::abs(found[place] - out[i]) < 1e-11);
        }
      }
    }
  }
}

// Single precision errs by 6e-8 times a condition number of some 10^3, relative to the largest slope.
BOOST_AUTO_TEST_CASE(single_precision_agrees_with_double) {
  for (const auto& [name, shape] : cases()) {
    BOOST_TEST_CONTEXT(name) {
      const StackBatch batch = batch_of(shape);
      const Eigen::VectorXd theta = parameters_of(shape);
      Eigen::VectorXd fine;
      Eigen::VectorXd coarse;
      const double loss = make_stack(shape, StackPrecision::double_precision)->gradient(theta, batch, fine);
      const double other = make_stack(shape, StackPrecision::single_precision)->gradient(theta, batch, coarse);
      BOOST_TEST(std::abs(other - loss) < 1e-4 * loss);
      BOOST_TEST((coarse - fine).lpNorm<Eigen::Infinity>() < 1e-4 * fine.lpNorm<Eigen::Infinity>());
    }
  }
}

// A loss a millionth as large has slopes a millionth as large, whatever solves the equations: 16 millionths of a large
// batch must not vanish. Rounding alone differs, as in the test above.
BOOST_AUTO_TEST_CASE(slopes_scale_with_the_loss) {
  StackShape shape = small({LayerKind::mesa}, TokenKind::constructed);
  shape.solver = MesaSolver::conjugate_gradients;
  StackBatch batch = batch_of(shape);
  const Eigen::VectorXd theta = parameters_of(shape);
  const auto model = make_stack(shape, StackPrecision::single_precision);
  Eigen::VectorXd whole;
  Eigen::VectorXd part;
  batch.position_weights.assign(7, 1.0 / 7.0);
  model->gradient(theta, batch, whole);
  batch.position_weights.assign(7, 1e-12 / 7.0);
  model->gradient(theta, batch, part);
  BOOST_TEST((1e12 * part - whole).lpNorm<Eigen::Infinity>() < 1e-4 * whole.lpNorm<Eigen::Infinity>());
}

// What is not a number must not look like a prediction.
BOOST_AUTO_TEST_CASE(what_is_not_a_number_stays_one) {
  for (auto& [name, shape] : cases()) {
    BOOST_TEST_CONTEXT(name) {
      StackBatch batch = batch_of(shape);
      batch.inputs[4] = std::nan("");
      const auto model = make_stack(shape, StackPrecision::double_precision);
      const std::vector<double> found = model->predictions(parameters_of(shape), batch);
      BOOST_TEST(std::isnan(found[20]));  // the last position of the sequence
      BOOST_TEST(std::isnan(model->loss(parameters_of(shape), batch)));
    }
  }
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit) {
  const StackShape shape = small({LayerKind::linear, LayerKind::mesa}, TokenKind::constructed);
  const StackBatch batch = batch_of(shape, 100);
  const Eigen::VectorXd theta = parameters_of(shape);
  Eigen::VectorXd alone;
  Eigen::VectorXd together;
  const double one = make_stack(shape, StackPrecision::single_precision, 1)->gradient(theta, batch, alone);
  const double two = make_stack(shape, StackPrecision::single_precision, 2)->gradient(theta, batch, together);
  BOOST_TEST(one == two);
  BOOST_TEST((alone.array() == together.array()).all());
}

BOOST_AUTO_TEST_SUITE_END()
