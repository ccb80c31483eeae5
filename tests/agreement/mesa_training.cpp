#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <utility>
#include <vector>

#include "iclflow/mesa/one_step.hpp"
#include "iclflow/mesa/training.hpp"

// Trainings of the published recipe, cut short: seconds each. The whole ones stand in experiments/mesa.

namespace {

using iclflow::LayerKind;
using iclflow::StackBatch;

iclflow::Outcome train(const iclflow::StackShape& shape, const iclflow::TrainingOptions& options) {
  const iclflow::StackTraining training({}, shape, options, 1, 2, false);
  iclflow::AdamRule rule(options.adam);
  return iclflow::descend(training, rule, iclflow::recorded_steps(options));
}

StackBatch evaluation_batch(const iclflow::TrainingOptions& options) {
  return iclflow::batch_of(iclflow::draw_sequences({}, options.evaluation_seed, iclflow::Stream::evaluation, 0, 0,
                                                   static_cast<std::size_t>(options.evaluation_sequences)));
}

/// Loss of predicting 0.
double zero_loss(const StackBatch& batch) {
  double sum = 0.0;
  for (const double x : batch.targets) sum += 0.5 * x * x;
  return sum / static_cast<double>(batch.count * static_cast<std::size_t>(batch.length));
}

/// min over eta of the loss of eta sum_{t' <= t} s_t' (s_{t'-1} . s_t), a quadratic in eta.
double best_step_loss(const StackBatch& batch, double& eta) {
  const std::size_t n = batch.inputs.size() / (batch.count * static_cast<std::size_t>(batch.length));
  double across = 0.0;
  double square = 0.0;
  for (std::size_t s = 0; s < batch.count; ++s) {
    std::vector<double> moment(n * n, 0.0);
    for (std::size_t t = 0; t < static_cast<std::size_t>(batch.length); ++t) {
      const double* now = batch.inputs.data() + (s * static_cast<std::size_t>(batch.length) + t) * n;
      const double* target = batch.targets.data() + (s * static_cast<std::size_t>(batch.length) + t) * n;
      for (std::size_t i = 0; i < n; ++i) {
        double step = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
          if (t > 0) moment[i * n + j] += now[i] * (now - n)[j];
          step += moment[i * n + j] * now[j];
        }
        across += step * target[i];
        square += step * step;
      }
    }
  }
  eta = across / square;
  const double terms = static_cast<double>(batch.count * static_cast<std::size_t>(batch.length));
  return zero_loss(batch) - 0.5 * across * across / square / terms;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mesa_training)

// The trained layer can do a little better than the best step (its clip, its Phi_0), and is not quite there after 600
// steps: 3 % of the loss to either side hold both; the rate of the best step depends on the two in the same way.
BOOST_AUTO_TEST_CASE(one_layer_learns_one_gradient_step, *boost::unit_test::label("slow")) {
  iclflow::StackShape shape;
  shape.heads = 2;
  shape.clip = 4.0;
  shape.mask_second = true;
  iclflow::TrainingOptions options;
  options.steps = 600;
  options.adam.rate = {7e-4, 1000, 10000, 1e-5};
  options.adam.weight_decay = 0.1;
  const iclflow::Outcome outcome = train(shape, options);
  double eta = 0.0;
  const double step = best_step_loss(evaluation_batch(options), eta);
  const double trained = outcome.trajectory["loss"].last().front();
  BOOST_TEST_MESSAGE("trained " << trained << ", best step " << step << " at " << eta);
  BOOST_TEST(std::abs(trained / step - 1.0) < 0.03);
  const iclflow::RecoveredStep recovered = iclflow::recover_step({shape, outcome.last.state});
  BOOST_TEST(std::abs(recovered.rate / eta - 1.0) < 0.1);
  BOOST_TEST(std::abs(recovered.minus_rate_phi) < 0.4 * recovered.rate);  // Phi_0 is small, not zero
}

// Shares of the zero loss in the public program's log of one run of this recipe (printed losses over 1.670). Its test
// sets have 256 sequences, 2 % of sampling error, and seeds shift the drop in time: a second seed lies within 0.04 of a
// first one. The published band is 0.06 of loss.
BOOST_AUTO_TEST_CASE(two_layers_follow_the_published_curve, *boost::unit_test::label("slow")) {
  iclflow::StackShape shape;
  shape.layers = {LayerKind::linear, LayerKind::linear};
  shape.clip = 1.5;
  iclflow::TrainingOptions options;
  options.steps = 800;
  const iclflow::Outcome outcome = train(shape, options);
  const double zero = zero_loss(evaluation_batch(options));
  constexpr std::array<std::pair<std::size_t, double>, 7> published{
      {{200, 1.669}, {300, 1.343}, {400, 0.841}, {500, 0.752}, {600, 0.584}, {700, 0.479}, {800, 0.452}}};
  for (const auto& [at, loss] : published) {
    const double share = outcome.trajectory["loss"].at(at / 100)[0] / zero;
    BOOST_TEST_MESSAGE(at << ": " << share << " against " << loss / 1.670);
    BOOST_TEST(std::abs(share - loss / 1.670) < 0.06 / 1.670, at << ": " << share);
  }
}

// 0.41 is where two linear layers end after 2400 steps.
BOOST_AUTO_TEST_CASE(one_mesa_layer_beats_two_linear_ones_early, *boost::unit_test::label("slow")) {
  iclflow::StackShape shape;
  shape.layers = {LayerKind::mesa};
  iclflow::TrainingOptions options;
  options.steps = 600;
  options.adam.rate = {7e-4, 1000, 30000, 1e-5};
  const double trained = train(shape, options).trajectory["loss"].last().front();
  BOOST_TEST_MESSAGE("trained " << trained);
  BOOST_TEST(trained < 0.35);
}

// Six layers at step 500: the share .520 / 1.679 of another program's run of the recipe; the loss falls by 0.04 of it
// in ten steps there, and seeds shift it by some of them: 0.08 of loss.
BOOST_AUTO_TEST_CASE(six_layers_follow_the_recipe, *boost::unit_test::label("slow")) {
  iclflow::StackShape shape;
  shape.layers.assign(6, LayerKind::linear);
  shape.clip = 1.5;
  iclflow::TrainingOptions options;
  options.steps = 500;
  options.evaluation_sequences = 1024;
  const double share = train(shape, options).trajectory["loss"].last().front() / zero_loss(evaluation_batch(options));
  BOOST_TEST_MESSAGE("share " << share);
  BOOST_TEST(std::abs(share - 0.520 / 1.679) < 0.08 / 1.679);
}

// Raw tokens: nothing can be predicted before the first layer makes pairs of states, and the loss rests at 1.65. The
// recorded runs leave it at step 500 and pass 0.5 (mesa) at 600, 1.3 (softmax) at 700: seeds may be 200 steps late.
BOOST_AUTO_TEST_CASE(raw_tokens_are_paired_and_regressed_on, *boost::unit_test::label("slow")) {
  iclflow::StackShape shape;
  shape.tokens = iclflow::TokenKind::raw;
  shape.position_dimension = 40;
  iclflow::TrainingOptions options;
  options.steps = 900;
  options.evaluation_sequences = 512;
  options.adam.rate = {7e-4, 1000, 30000, 1e-5};
  options.initial_deviation = 0.05;
  for (const std::vector<LayerKind>& layers :
       {std::vector{LayerKind::softmax, LayerKind::mesa}, std::vector(3, LayerKind::softmax)}) {
    shape.layers = layers;
    const double trained = train(shape, options).trajectory["loss"].last().front();
    BOOST_TEST_MESSAGE(layers.size() << " layers: " << trained);
    BOOST_TEST(trained < (layers.back() == LayerKind::mesa ? 0.5 : 1.3));
  }
}

BOOST_AUTO_TEST_SUITE_END()
