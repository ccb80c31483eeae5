// Products of heads, compression, and one layer as one gradient step.
#include <Eigen/QR>
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "iclflow/mesa/baselines.hpp"
#include "iclflow/mesa/compression_section.hpp"
#include "iclflow/mesa/one_step.hpp"
#include "iclflow/mesa/training.hpp"

using namespace iclflow;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Json = nlohmann::ordered_json;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr int n = 3;

StackShape small(std::vector<LayerKind> layers) {
  StackShape shape;
  shape.layers = std::move(layers);
  shape.state_dimension = n;
  shape.width = 4 * n;
  shape.heads = 2;
  shape.key_dimension = 5;
  return shape;
}

SequenceProblem small_problem() {
  SequenceProblem problem;
  problem.state_dimension = n;
  problem.length = 7;
  problem.noise_deviation = 0.1;
  return problem;
}

StackModelWeights drawn(const StackShape& shape, double deviation = 0.2) {
  return {shape, initial_parameters(shape, deviation, 3)};
}

StackBatch small_batch() { return batch_of(draw_sequences(small_problem(), 1, Stream::sequences, 0, 0, 20)); }

VectorXd predictions(const StackModelWeights& model, const StackBatch& batch) {
  const auto values = make_stack(model.shape, StackPrecision::double_precision)->predictions(model.parameters, batch);
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

/// Some 1e3 operations of order one lie between weights and predictions.
double distance(const StackModelWeights& one, const StackModelWeights& other) {
  const StackBatch batch = small_batch();
  const VectorXd a = predictions(one, batch), b = predictions(other, batch);
  return (a - b).norm() / a.norm() / (1e3 * epsilon);
}

/// f_t = predict(states up to s_t as columns) for all t of all sequences.
template <typename Predict>
VectorXd written_out(const StackBatch& batch, Predict predict) {
  VectorXd all(static_cast<Index>(batch.inputs.size()));
  Index at = 0;
  for (std::size_t k = 0; k < batch.count; ++k) {
    const Eigen::Map<const MatrixXd> s(batch.inputs.data() + static_cast<Index>(k) * batch.length * n, n, batch.length);
    for (int t = 1; t <= batch.length; ++t, at += n) all.segment(at, n) = predict(MatrixXd(s.leftCols(t)));
  }
  return all;
}

MatrixXd second_moment(const MatrixXd& s) {
  const MatrixXd before = s.leftCols(s.cols() - 1);
  return before * before.transpose();
}
MatrixXd lagged_moment(const MatrixXd& s) { return s.rightCols(s.cols() - 1) * s.leftCols(s.cols() - 1).transpose(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(mesa_one_step)

BOOST_AUTO_TEST_CASE(products_are_all_that_acts) {
  for (const LayerKind kind : {LayerKind::linear, LayerKind::softmax}) {
    StackShape shape = small({kind, LayerKind::linear, kind});
    shape.clip = 1.1;
    const StackModelWeights model = drawn(shape);
    const StackModelWeights wide = stack_of(shape, head_products(shape, model.parameters));
    BOOST_TEST(wide.shape.key_dimension == shape.width);
    BOOST_TEST(distance(model, wide) < 1.0);
    BOOST_TEST(distance(model, interpolate(model, model)) < 1.0);
    // half way is where both ends have the same share, whichever factors make them
    const StackModelWeights other{shape, initial_parameters(shape, 0.2, 4)};
    BOOST_TEST(distance(interpolate(model, other),
                        interpolate(stack_of(shape, head_products(shape, other.parameters)), wide)) < 1.0);
    BOOST_TEST(distance(model, interpolate(model, other)) > 1e6);
  }
}

// Blocks c I are what commutes with rotations of the states: f(U s) = U f(s).
BOOST_AUTO_TEST_CASE(compressed_models_know_no_direction) {
  const StackModelWeights model = drawn(small({LayerKind::linear, LayerKind::softmax}));
  const StackModelWeights compressed = compress(model.shape, model.parameters);
  BOOST_TEST(distance(compressed, compress(compressed.shape, compressed.parameters)) < 1.0);
  const MatrixXd U = MatrixXd(Eigen::HouseholderQR<MatrixXd>(MatrixXd{{1, 2, 3}, {0, 1, 4}, {5, 6, 0}}).householderQ());
  const StackBatch batch = small_batch();
  StackBatch turned = batch;
  const auto columns = static_cast<Index>(batch.inputs.size()) / n;
  Eigen::Map<MatrixXd>(turned.inputs.data(), n, columns) =
      U * Eigen::Map<const MatrixXd>(batch.inputs.data(), n, columns);
  const auto asymmetry = [&](const StackModelWeights& weights) {
    const VectorXd before = predictions(weights, batch), after = predictions(weights, turned);
    return (U * before.reshaped(n, columns) - after.reshaped(n, columns)).norm() / before.norm();
  };
  BOOST_TEST(asymmetry(compressed) < 1e3 * epsilon);
  BOOST_TEST(asymmetry(model) > 0.1);
  // the mean over rotations about the coordinates' axes and signs, so closer than any other of its kind
  const MatrixXd product = head_products(model.shape, model.parameters)[0][1].key_query;
  const MatrixXd kept = head_products(compressed.shape, compressed.parameters)[0][1].key_query;
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 4; ++j) {
      const double mean = product.block(i * n, j * n, n, n).trace() / n;
      BOOST_TEST((kept.block(i * n, j * n, n, n) - mean * MatrixXd::Identity(n, n)).norm() < 10.0 * epsilon);
    }
  }
}

BOOST_AUTO_TEST_CASE(trainings_report_what_a_stack_would_measure) {
  StackShape shape = small({LayerKind::linear});
  shape.clip = 0.9;
  const VectorXd end = initial_parameters(shape, 0.3, 3), before = initial_parameters(shape, 0.3, 4);
  DynamicsResult result;
  result.seeds = {3, 4};
  result.final_states = {end, before};
  for (const VectorXd& last : result.final_states) {
    Trajectory trajectory;
    const std::size_t row =
        trajectory.declare("parameters", "", {"parameter"}, {static_cast<std::size_t>(last.size())});
    trajectory.times = {0.0, 10.0};
    for (const VectorXd& now : {before, last})
      trajectory.append(row, std::span<const double>(now.data(), static_cast<std::size_t>(now.size())));
    result.members.push_back(trajectory);
  }
  const StackBatch batch = batch_of(draw_sequences(small_problem(), 7, Stream::evaluation, 0, 0, 20));
  const VectorXd targets = Eigen::Map<const VectorXd>(batch.targets.data(), static_cast<Index>(batch.targets.size()));
  const auto loss = [&](const StackModelWeights& weights) {
    return 0.5 * (predictions(weights, batch) - targets).squaredNorm() / (20.0 * 7.0);
  };
  const auto means = [&](const VectorXd& parameters) { return compress(shape, parameters); };
  const auto half = [&](const VectorXd& now, const VectorXd& last) {
    return loss(interpolate({shape, now}, means(last)));
  };
  const Json json = compression_of_training({true}, shape, result, batch, 1, {});
  const auto same = [](const Json& value, double expected) { return std::abs(value.get<double>() - expected) < 1e-12; };
  // losses along the way are taken in single precision
  const auto near_enough = [](const Json& value, double expected) {
    return std::abs(value.get<double>() - expected) < 1e-5;
  };
  BOOST_TEST(same(json.at("trained_loss"), 0.5 * (loss({shape, end}) + loss({shape, before}))));
  BOOST_TEST(same(json.at("loss"), 0.5 * (loss(means(end)) + loss(means(before)))));
  BOOST_TEST(same(json.at("interpolated_loss"), 0.5 * (half(end, end) + half(before, before))));
  BOOST_TEST(json.at("parameters_per_head") == 32);
  BOOST_TEST(json.at("by_seed")[1].at("seed") == 4);
  const Json& along = json.at("along");
  BOOST_TEST(along.at("step").get<std::vector<double>>() == (std::vector<double>{0.0, 10.0}));
  BOOST_TEST(near_enough(along.at("compressed_loss")[0], loss(means(before))));
  BOOST_TEST(near_enough(along.at("compressed_loss")[1], 0.5 * (loss(means(end)) + loss(means(before)))));
  BOOST_TEST(near_enough(along.at("interpolated_loss")[0], 0.5 * (half(before, end) + half(before, before))));
  BOOST_TEST(!compression_of_training({false}, shape, result, batch, 1, {}).contains("along"));
  BOOST_TEST(compression_of_training({true}, shape, result, batch, 1, [] { return true; }).is_null());

  const Json steps = one_step_of_training({20, 7}, small_problem(), shape, result, 1, {});
  BOOST_TEST(same(steps.at("trained_loss"), json.at("trained_loss").get<double>()));
  BOOST_TEST(same(steps.at("compressed_loss"), json.at("loss").get<double>()));
  const double one = recover_step({shape, end}).rate, other = recover_step({shape, before}).rate;
  BOOST_TEST(same(steps.at("eta"), 0.5 * (one + other)));
  BOOST_TEST(same(steps.at("eta_standard_error"), 0.5 * std::abs(one - other)));
  BOOST_TEST(steps.at("by_seed")[1].at("seed") == 4);
}

// A step of gradient descent on (1/2) sum |s_{t'+1} - Phi s_t'|^2 from phi I, less phi s_t, by differences of that sum:
// central ones are exact for a quadratic, but for rounding over the step.
BOOST_AUTO_TEST_CASE(constructed_weights_take_a_gradient_step) {
  const double rate = 0.2, phi = 0.3;
  const auto objective = [](const MatrixXd& s, const MatrixXd& Phi) {
    const Index pairs = s.cols() - 1;
    return 0.5 * (s.rightCols(pairs) - Phi * s.leftCols(pairs)).squaredNorm();
  };
  for (const bool masked : {true, false}) {
    StackShape shape = small({LayerKind::linear});
    shape.mask_second = masked;
    const StackBatch batch = small_batch();
    const VectorXd expected = written_out(batch, [&](const MatrixXd& s) -> VectorXd {
      MatrixXd gradient(n, n);
      for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < n; ++j) {
          MatrixXd up = phi * MatrixXd::Identity(n, n), down = up;
          up(i, j) += 0.5;
          down(i, j) -= 0.5;
          gradient(i, j) = objective(s, up) - objective(s, down);
        }
      }
      return -rate * gradient * s.rightCols(1);
    });
    const StackModelWeights step = constructed_step(shape, rate, -rate * phi);
    BOOST_TEST((predictions(step, batch) - expected).norm() < 1e3 * epsilon * expected.norm());
    const RecoveredStep recovered = recover_step(step);
    BOOST_TEST(std::abs(recovered.rate - rate) < 4.0 * epsilon);
    BOOST_TEST(std::abs(recovered.minus_rate_phi + rate * phi) < 4.0 * epsilon);
  }
}

// Heads may share a step in any way, with any signs and in either copy of s_t: only the sum is the step's.
BOOST_AUTO_TEST_CASE(a_step_is_recovered_from_the_sum_over_heads) {
  const StackShape shape = small({LayerKind::linear});
  const auto block = [](MatrixXd& product, Index i, Index j, double value) {
    product.block(i * n, j * n, n, n) += value * MatrixXd::Identity(n, n);
  };
  const HeadProducts none{MatrixXd::Zero(12, 12), MatrixXd::Zero(12, 12)};
  std::vector<HeadProducts> heads{none, none};
  block(heads[0].key_query, 3, 2, -2.0);
  block(heads[0].output_value, 0, 2, -0.3);
  block(heads[0].output_value, 0, 1, 0.1);
  block(heads[1].key_query, 3, 1, 0.5);
  block(heads[1].key_query, 3, 2, 0.5);
  block(heads[1].output_value, 0, 2, -0.15);
  block(heads[1].output_value, 0, 3, 0.02);
  const StackModelWeights model = stack_of(shape, {heads});
  const RecoveredStep step = recover_step(model);
  BOOST_TEST(std::abs(step.rate - 0.25) < 10.0 * epsilon);
  BOOST_TEST(std::abs(step.minus_rate_phi - 0.02) < 10.0 * epsilon);
  BOOST_TEST(distance(model, constructed_step(shape, 0.25, 0.02)) < 1.0);
}

// Without noise s_{t'-1} . s_{t-1} = s_t' . s_t: blocks (3,3) and (4,4) of key_query form M_t s_t, |s_t|^2 s_t and the
// first state's share.
BOOST_AUTO_TEST_CASE(blocks_that_see_the_same_scores_move_phi) {
  for (const bool masked : {true, false}) {
    StackShape shape = small({LayerKind::linear});
    shape.mask_second = masked;
    SequenceProblem problem = small_problem();
    problem.noise_deviation = 0.0;
    const StackBatch batch = batch_of(draw_sequences(problem, 1, Stream::sequences, 0, 0, 20));
    HeadProducts head{MatrixXd::Zero(12, 12), MatrixXd::Zero(12, 12)};
    const double p = 0.4, a = -0.03, c = 0.1;
    head.key_query.block(2 * n, 2 * n, n, n) = a * MatrixXd::Identity(n, n);
    head.key_query.block(3 * n, 3 * n, n, n) = c * MatrixXd::Identity(n, n);
    head.output_value.block(0, 2 * n, n, n) = p * MatrixXd::Identity(n, n);
    const StackModelWeights model = stack_of(shape, {{head}});
    const RecoveredStep step = recover_step(model);
    BOOST_TEST(step.minus_rate_phi == 0.0);
    BOOST_TEST(std::abs(step.effective_minus_rate_phi - p * (a + c)) < 4.0 * epsilon);
    const VectorXd rest = written_out(batch, [&](const MatrixXd& s) -> VectorXd {
      const VectorXd query = s.rightCols(1), first = s.col(0);
      return p * ((a + c) * query.squaredNorm() * query - c * first.dot(query) * first);
    });
    const VectorXd expected = predictions(constructed_step(shape, 0.0, step.effective_minus_rate_phi), batch) + rest;
    BOOST_TEST((predictions(model, batch) - expected).norm() < 1e3 * epsilon * expected.norm());
  }
}

BOOST_AUTO_TEST_CASE(constructed_layers_precondition_the_query) {
  const std::vector<double> a{0.1, -0.2, 0.15}, b{0.05, 0.3, -0.1};
  const StackShape shape = small({LayerKind::linear});
  const StackModelWeights model = constructed_steps(shape, 0.7, a, b);
  BOOST_TEST(model.shape.layers.size() == 4U);
  const StackBatch batch = small_batch();
  const VectorXd expected = written_out(batch, [&](const MatrixXd& s) -> VectorXd {
    const VectorXd query = s.rightCols(1);
    VectorXd z = query;
    for (std::size_t k = 0; k < a.size(); ++k) z -= second_moment(s) * (a[k] * z + b[k] * query);
    return 0.7 * lagged_moment(s) * z;
  });
  BOOST_TEST((predictions(model, batch) - expected).norm() < 1e3 * epsilon * expected.norm());
  StackShape masked = shape;
  masked.mask_second = true;
  BOOST_CHECK_THROW(static_cast<void>(constructed_steps(masked, 1.0, a, b)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_constructed_layer_is_its_own_gradient_step) {
  StackShape shape = small({LayerKind::linear});
  shape.mask_second = true;
  shape.clip = 1.0;
  const Json json = one_step({50, 1}, small_problem(), constructed_step(shape, 0.3, -0.02), 1, {});
  BOOST_TEST(std::abs(json.at("eta").get<double>() - 0.3) < 4.0 * epsilon);
  for (const char* name : {"predictions", "sensitivities"}) {
    BOOST_TEST(std::abs(json.at("effective_cosines").at(name).at("mean").get<double>() - 1.0) < 100.0 * epsilon);
    BOOST_TEST(std::abs(json.at("cosines").at(name).at("mean").get<double>() - 1.0) < 100.0 * epsilon);
  }
  for (const auto& [name, value] : json.at("sparsity").items())
    BOOST_TEST(std::abs(value.get<double>()) < epsilon, name);
  const auto loss = [&](const char* name) { return json.at("losses").at(name).at("loss").get<double>(); };
  BOOST_TEST(std::abs(loss("trained") - loss("constructed")) < 1e-13);
  BOOST_TEST(std::abs(loss("trained") - loss("compressed")) < 1e-13);
  BOOST_TEST(loss("best_step_from_phi") < loss("best_step"));
  BOOST_TEST(loss("best_step_from_phi") < loss("trained"));
}

// The best rate under a clip, by Gauss-Newton here and by golden section among the baselines, on the same sequences.
BOOST_AUTO_TEST_CASE(best_steps_agree_with_the_baselines) {
  StackShape shape = small({LayerKind::linear});
  for (const double clip : {0.0, 0.8}) {
    shape.clip = clip;
    const Json steps = one_step({200, 5}, small_problem(), constructed_step(shape, 0.1, 0.0), 1, {});
    BaselinePlan plan;
    plan.sequences = 200;
    plan.seed = 5;
    plan.clip = clip;
    plan.preconditioned_steps = {0};
    const Json entry = sampled_baselines(plan, small_problem(), 1, {})["gradient_step"];
    const Json& expected = clip > 0.0 ? entry.at("clipped") : entry;
    const Json& best = steps.at("losses").at("best_step");
    // The loss is flat at its minimum: rates that differ by 1e-4 differ in it by 1e-8.
    BOOST_TEST(std::abs(best.at("loss").get<double>() - expected.at("loss").get<double>()) < 1e-7);
    const double ratio = best.at("eta").get<double>() / entry.at("eta").get<double>();
    BOOST_TEST((std::abs(ratio - 1.0) < 1e-9) == (clip == 0.0));
    BOOST_TEST(std::abs(best.at("standard_error").get<double>() - expected.at("standard_error").get<double>()) < 1e-5);
  }
}

// Derivatives of f_T by differences: truncation of a cubic and rounding over the step.
BOOST_AUTO_TEST_CASE(sensitivities_are_derivatives) {
  StackShape shape = small({LayerKind::linear});
  const StackModelWeights model = drawn(shape, 0.4);
  const RecoveredStep step = recover_step(model);
  const StackModelWeights constructed = constructed_step(shape, step.rate, step.minus_rate_phi);
  const std::size_t count = 4;
  const Json json = one_step({count, 2}, small_problem(), model, 1, {});
  const StackBatch batch = batch_of(draw_sequences(small_problem(), 2, Stream::evaluation, 0, 0, count));
  const auto slopes = [&](const StackModelWeights& weights, std::size_t sequence) {
    MatrixXd jacobian(n, 7 * n);
    for (Index j = 0; j < 7 * n; ++j) {
      StackBatch moved = batch;
      const double h = 1e-4;
      moved.inputs[sequence * 21 + static_cast<std::size_t>(j)] += h;
      const VectorXd up = predictions(weights, moved);
      moved.inputs[sequence * 21 + static_cast<std::size_t>(j)] -= 2.0 * h;
      const VectorXd down = predictions(weights, moved);
      jacobian.col(j) = (up - down).segment(static_cast<Index>(sequence) * 21 + 18, n) / (2.0 * h);
    }
    return jacobian;
  };
  double mean = 0.0;
  for (std::size_t k = 0; k < count; ++k) {
    const MatrixXd one = slopes(model, k), other = slopes(constructed, k);
    mean += one.cwiseProduct(other).sum() / (one.norm() * other.norm()) / static_cast<double>(count);
  }
  BOOST_TEST(std::abs(json.at("cosines").at("sensitivities").at("mean").get<double>() - mean) < 1e-7);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused) {
  StackShape raw = small({LayerKind::linear});
  raw.tokens = TokenKind::raw;
  for (const StackShape& shape : {raw, small({LayerKind::mesa})}) {
    BOOST_CHECK_THROW(static_cast<void>(compress(shape, initial_parameters(shape, 1.0, 1))), std::invalid_argument);
  }
  const StackModelWeights one = drawn(small({LayerKind::linear})),
                          two = drawn(small({LayerKind::linear, LayerKind::linear}));
  BOOST_CHECK_THROW(static_cast<void>(interpolate(one, two)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(recover_step(two)), std::invalid_argument);
  BOOST_TEST(one_step({10, 1}, small_problem(), one, 1, [] { return true; }).is_null());
  const Document document = parse_document("[one_step]\nsequences = 70\nseed = 9", "f.toml");
  const auto plan = read_one_step(Section(document));
  TomlText text;
  resolve(*plan, text);
  BOOST_TEST(text.text().find("sequences = 70") != std::string::npos);
  BOOST_TEST(text.text().find("seed = 9") != std::string::npos);
  const Document other = parse_document("[compression]\nalong = false", "f.toml");
  resolve(*read_compression(Section(other)), text);
  BOOST_TEST(text.text().find("along = false") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
