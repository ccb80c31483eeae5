#include <Eigen/Geometry>
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "iclflow/mesa/few_shot.hpp"
#include "iclflow/mesa/probes.hpp"

using namespace iclflow;
using Json = nlohmann::ordered_json;

namespace {

StackShape linear_shape(int n) {
  StackShape shape;
  shape.state_dimension = n;
  shape.width = 4 * n;
  shape.heads = 1;
  shape.key_dimension = n;
  return shape;
}

/// One gradient step from 0: queries s_t, keys s_{t-1}, values s_t, written to the first channel times eta.
Eigen::VectorXd gradient_step_weights(const StackShape& shape, double eta) {
  const StackLayout layout = StackLayout::of(shape);
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(layout.size);
  const LayerOffsets& at = layout.layers[0];
  const int n = shape.state_dimension;
  for (int i = 0; i < n; ++i) {
    weights[at.query + i * 4 * n + 2 * n + i] = 1.0;
    weights[at.key + i * 4 * n + 3 * n + i] = 1.0;
    weights[at.value + i * 4 * n + 2 * n + i] = 1.0;
    weights[at.output + i * n + i] = eta;
  }
  return weights;
}

ProbePlan small_plan(std::size_t sequences, int length) {
  ProbePlan plan;
  plan.sequences = sequences;
  plan.positions = {1, 2, length};
  plan.past = 4;
  plan.sensitivity_sequences = 4;
  return plan;
}

FewShotPlan small_shots(int pairs) {
  FewShotPlan plan;
  plan.pairs = pairs;
  plan.sequences = 300;
  plan.batch = 32;
  plan.steps = 150;
  plan.prefix = 2;
  plan.learning_rate_eos = plan.learning_rate_prefix = 0.01;
  plan.initial_deviation = 0.3;
  return plan;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(probes_and_prompts)

// A stack of zero weights hands its tokens on: [0, s_T, s_T, s_{T-1}] at the last position.
BOOST_AUTO_TEST_CASE(what_stands_in_the_token_is_decoded_and_nothing_else) {
  SequenceProblem problem;
  problem.state_dimension = problem.hidden_dimension = 4;
  problem.length = 12;
  const StackShape shape = linear_shape(4);
  const Eigen::VectorXd zero = Eigen::VectorXd::Zero(StackLayout::of(shape).size);
  ProbePlan plan = small_plan(600, 12);
  plan.lambda = 2.0;
  const Json found = probes(problem, shape, zero, plan);
  const Json& past = found.at("past_tokens");
  for (const std::size_t k : {2U, 3U}) {
    // The decoder's ridge of 1e-8 shrinks by as much, the error is its square; rounding 1e-16 / 1e-8.
    BOOST_TEST(past["loss"][k].get<double>() < 1e-12);
  }
  for (const std::size_t k : {0U, 1U}) {
    // E W*^k = I / n for even k, 0 for odd: of s_{T-2} and s_{T-3} one neighbour but one tells 1 / n^2. 8 distinct
    // inputs cost 8 / 600. A sequence's gain spreads by 1 / n times the spread sqrt(2) / n of tr W*^2 / n, about .1 of
    // the constant's loss: 4 standard errors are .02 from the score, as much from the fit.
    const double ratio = past["loss"][k].get<double>() / past["constant_loss"][k].get<double>();
    BOOST_TEST(std::abs(ratio - (1.0 - 1.0 / 16.0) * (1.0 + 8.0 / 600.0)) < 0.03);
  }
  // d token / d s_T: two identities, d token / d s_{T-1}: one. Central differences of linear functions: rounding /
  // step.
  const auto norm = found.at("sensitivity").at("norm").get<std::vector<double>>();
  BOOST_REQUIRE(norm.size() == 12U);
  BOOST_TEST(std::abs(norm[11] - std::sqrt(8.0)) < 1e-9);
  BOOST_TEST(std::abs(norm[10] - 2.0) < 1e-9);
  BOOST_TEST(*std::max_element(norm.begin(), norm.end() - 2) == 0.0);
  // t = 1: the preconditioned input is lambda s_1, of which the token holds a copy; the last layer is whole, too.
  for (const std::size_t layer : {0U, 1U}) {
    BOOST_TEST(found["preconditioned_input"]["loss"][layer][0].get<double>() < 1e-12);
  }
  BOOST_TEST(found["preconditioned_input"]["loss"][0][2].get<double>() > 1e-6);
  // Its loss 2 |s_1|^2 has mean 8 / 3 and deviation 2 sqrt(4 (1/5 - 1/9)): 4 standard errors are 0.2.
  BOOST_TEST(std::abs(found["preconditioned_input"]["constant_loss"][0].get<double>() - 8.0 / 3.0) < 0.2);
}

// One W* for all sequences makes the next state linear in s_t: only its noise is left.
BOOST_AUTO_TEST_CASE(a_fixed_map_is_decoded_down_to_its_noise) {
  SequenceProblem problem;
  problem.kind = SequenceKind::fixed;
  problem.state_dimension = problem.hidden_dimension = 4;
  problem.length = 6;
  problem.noise_deviation = 0.05;
  const StackShape shape = linear_shape(4);
  ProbePlan plan = small_plan(1000, 6);
  plan.past = 0;
  plan.sensitivity_sequences = 0;
  const Json found = probes(problem, shape, Eigen::VectorXd::Zero(StackLayout::of(shape).size), plan);
  const double noise = 0.5 * 4 * 0.05 * 0.05;
  for (const std::size_t position : {1U, 2U}) {
    const double loss = found["next_state"]["loss"][0][position].get<double>();
    // 8 distinct inputs cost 8 / 1000 of the noise; 5 standard errors.
    BOOST_TEST(std::abs(loss - noise * 1.008) < 5.0 * found["next_state"]["standard_error"][0][position].get<double>());
  }
  // On new sequences a decoder from few is worse than the noise, 1 + 8 / 31 of it with 40; on its own it would be
  // better, 1 - 8 / 40. Either spreads by sqrt(2 / (4 * 40)) = .11, the mean over two positions by less.
  plan.sequences = 40;
  const Json few = probes(problem, shape, Eigen::VectorXd::Zero(StackLayout::of(shape).size), plan);
  const Json& losses = few["next_state"]["loss"][0];
  BOOST_TEST(0.5 * (losses[1].get<double>() + losses[2].get<double>()) > 1.03 * noise);
  BOOST_TEST(!found.contains("past_tokens"));
  BOOST_TEST(probes_figure(found, "x").by_layer.size() == 2U);
}

// The gradient step forms G_t s_t: the next state is decoded better after it.
BOOST_AUTO_TEST_CASE(a_gradient_step_makes_the_next_state_readable) {
  SequenceProblem problem;
  problem.state_dimension = problem.hidden_dimension = 4;
  problem.length = 20;
  const StackShape shape = linear_shape(4);
  ProbePlan plan = small_plan(400, 20);
  plan.sensitivity_sequences = 0;
  const Eigen::VectorXd weights = gradient_step_weights(shape, 0.1);
  const Json found = probes(problem, shape, weights, plan);
  const Json& next = found["next_state"];
  // E s s^T = I / 3 makes G_t s_t about t / 3 W* s_t, with a spread of its own: a third of the error is a loose bound.
  BOOST_TEST(next["loss"][1][2].get<double>() < 0.5 * next["loss"][0][2].get<double>());
  BOOST_TEST(found.dump() == probes(problem, shape, weights, plan, 2).dump());
  BOOST_TEST(probes(problem, shape, weights, plan, 1, [] { return true; }).is_null());
}

BOOST_AUTO_TEST_CASE(prompts_stand_where_they_belong) {
  PairSet pairs{1, 2, 1, 2, {1, 2, 3, 4}, {5, 6, 7, 8}};
  Prompt prompt{Eigen::MatrixXd::Constant(2, 1, 9.0), Eigen::MatrixXd::Constant(2, 1, 10.0)};
  const StackBatch batch = prompted(pairs, prompt);
  BOOST_TEST(batch.length == 7);
  const std::vector<double> inputs{9, 9, 1, 2, 5, 6, 10, 10, 3, 4, 7, 8, 10, 10};
  BOOST_TEST(batch.inputs == inputs, boost::test_tools::per_element());
  const std::vector<double> weights{0, 0.5, 0, 0, 0.5, 0, 0};
  BOOST_TEST(batch.position_weights == weights, boost::test_tools::per_element());
  const std::vector<double> targets{0, 0, 5, 6, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0};
  BOOST_TEST(batch.targets == targets, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_gradient_by_the_prompt_is_the_slope_of_the_loss) {
  const StackShape shape = linear_shape(3);
  const auto model = make_stack(shape, StackPrecision::double_precision);
  const Eigen::VectorXd weights = gradient_step_weights(shape, 0.2);
  FewShotPlan plan = small_shots(4);
  const PairSet pairs = draw_pairs(plan, 3, 1, 7, 5);
  Prompt prompt{Eigen::MatrixXd::Random(3, 2), Eigen::MatrixXd::Random(3, 1)};
  Prompt gradient;
  prompt_gradient(*model, weights, pairs, prompt, gradient);
  const double step = 1e-5;
  const auto slope = [&](double& entry) {
    const double before = entry;
    Prompt unused;
    entry = before + step;
    const double above = prompt_gradient(*model, weights, pairs, prompt, unused);
    entry = before - step;
    const double below = prompt_gradient(*model, weights, pairs, prompt, unused);
    entry = before;
    return (above - below) / (2.0 * step);
  };
  for (Eigen::Index i = 0; i < prompt.prefix.size(); ++i) {
    // truncation step^2 = 1e-10 and rounding 1e-16 / 1e-5 of slopes of order 1, ten times each
    BOOST_TEST(std::abs(slope(prompt.prefix.data()[i]) - gradient.prefix.data()[i]) < 1e-9);
  }
  for (Eigen::Index i = 0; i < 3; ++i) {
    BOOST_TEST(std::abs(slope(prompt.eos.data()[i]) - gradient.eos.data()[i]) < 1e-9);
  }
}

// theory: eq:prompt-symmetry. A model of multiples of I answers the rotated question with the rotated answer, so the
// gradient turns with prompt and pairs, and a prompt of zeros has gradient zero.
BOOST_AUTO_TEST_CASE(an_equivariant_model_turns_with_its_prompt) {
  const StackShape shape = linear_shape(3);
  const auto model = make_stack(shape, StackPrecision::double_precision);
  const Eigen::VectorXd weights = gradient_step_weights(shape, 0.2);
  const PairSet pairs = draw_pairs(small_shots(4), 3, 1, 7, 5);
  PairSet turned = pairs;
  const Eigen::Matrix3d u = Eigen::AngleAxisd(0.7, Eigen::Vector3d(1, 2, 3).normalized()).toRotationMatrix();
  for (std::vector<double>* values : {&turned.x, &turned.y}) {
    Eigen::Map<Eigen::Matrix3Xd> columns(values->data(), 3, static_cast<Eigen::Index>(values->size() / 3));
    columns = (u * columns).eval();
  }
  const Prompt prompt{Eigen::MatrixXd::Random(3, 2), Eigen::MatrixXd::Random(3, 1)};
  Prompt gradient;
  Prompt gradient_turned;
  const double loss = prompt_gradient(*model, weights, pairs, prompt, gradient);
  const double same = prompt_gradient(*model, weights, turned, {u * prompt.prefix, u * prompt.eos}, gradient_turned);
  BOOST_TEST(std::abs(loss - same) < 1e-13 * loss * 100.0);
  BOOST_TEST((u * gradient.prefix - gradient_turned.prefix).norm() < 1e-12);
  BOOST_TEST((u * gradient.eos - gradient_turned.eos).norm() < 1e-12);
  BOOST_TEST(gradient.eos.norm() > 1e-3);
}

// theory: eq:few-shot-directions. Least squares from i < n exact pairs knows i directions of n: loss (n - i) / 2 at
// unit variance; with n pairs all.
BOOST_AUTO_TEST_CASE(least_squares_learns_a_direction_from_each_pair) {
  FewShotPlan plan = small_shots(9);
  plan.inputs = InitialLaw::normal;
  const int n = 6;
  const std::size_t count = 2000;
  const PairSet pairs = draw_pairs(plan, n, 1, 0, count);
  const std::vector<double> losses = least_squares_losses(pairs, 1e8, false);
  for (int i = 0; i < 9; ++i) {
    // chi-square with n - i degrees of freedom, halved: variance (n - i) / 2
    const double expected = 0.5 * std::max(0, n - i);
    BOOST_TEST(std::abs(losses[static_cast<std::size_t>(i)] - expected) <
               4.0 * std::sqrt(0.5 * std::max(0, n - i) / count) + 1e-3);
  }
}

// Spurious pairs (y_i, x_{i+1}) mislead: with 2 i of n equations the loss grows first and falls when pairs abound.
BOOST_AUTO_TEST_CASE(spurious_pairs_make_the_loss_ascend_first) {
  const FewShotPlan plan = small_shots(20);
  const std::vector<double> losses = least_squares_losses(draw_pairs(plan, 6, 1, 0, 1000), 1000.0, true);
  BOOST_TEST(losses[1] > losses[0]);
  BOOST_TEST(losses[2] > 1.2 * losses[0]);
  BOOST_TEST(losses[19] < losses[0]);
}

BOOST_AUTO_TEST_CASE(a_prompt_is_learned_with_the_model_frozen) {
  const StackShape shape = linear_shape(3);
  const auto model = make_stack(shape, StackPrecision::double_precision);
  const Eigen::VectorXd weights = gradient_step_weights(shape, 0.25);
  const FewShotPlan plan = small_shots(8);
  const Json found = few_shot(*model, weights, plan);
  // The model is one gradient step on the pairs and the spurious pairs: eta G_t x.
  const PairSet pairs = draw_pairs(plan, 3, 1, 0, plan.sequences);
  double expected = 0.0;
  for (std::size_t k = 0; k < pairs.count; ++k) {
    const Eigen::Map<const Eigen::Matrix3Xd> x(pairs.x.data() + k * 24, 3, 8);
    const Eigen::Map<const Eigen::Matrix3Xd> y(pairs.y.data() + k * 24, 3, 8);
    Eigen::Matrix3d moment = y.leftCols(7) * x.leftCols(7).transpose() + x.rightCols(7) * y.leftCols(7).transpose();
    expected += 0.5 * (y.col(7) - 0.25 * moment * x.col(7)).squaredNorm() / static_cast<double>(pairs.count);
  }
  const Json& models = found["one_task"]["models"];
  BOOST_TEST(std::abs(models["TF"]["loss"][7].get<double>() - expected) < 1e-12 * 300);
  BOOST_TEST(models["TF"]["loss"].size() == 8U);
  BOOST_TEST(found["two_tasks"]["models"]["TF+EOS+P"]["loss"].size() == 16U);
  BOOST_TEST(found["two_tasks"]["controls"]["spurious"]["loss"].size() == 16U);
  // Without spurious pairs the step is a better one; by symmetry the best token is 0, and it has come nearer.
  BOOST_TEST(models["TF+EOS"]["mean_loss"].get<double>() < models["TF"]["mean_loss"].get<double>());
  const auto eos = found["prompts"]["TF+EOS"]["eos"][0].get<std::vector<double>>();
  BOOST_TEST(std::hypot(eos[0], eos[1], eos[2]) < 0.15);
  BOOST_TEST(found["prompts"]["TF+EOS+P"]["prefix"].size() == 2U);
  const auto threaded = make_stack(shape, StackPrecision::double_precision, 2);
  BOOST_TEST(found.dump() == few_shot(*threaded, weights, plan).dump());
  BOOST_TEST(few_shot(*model, weights, plan, [] { return true; }).is_null());
  const FewShotFigure figure = few_shot_figure(found, "x");
  BOOST_TEST(figure.panels.size() == 2U);
  BOOST_TEST(figure.panels[1].second_task_at == 8.0);
}

BOOST_AUTO_TEST_CASE(the_tables_are_read_and_written) {
  const auto probes_of = [](const std::string& text) {
    const Document document = parse_document(text, "f.toml");
    return read_probes(Section(document), 50);
  };
  const auto shots_of = [](const std::string& text) {
    const Document document = parse_document(text, "f.toml");
    return read_few_shot(Section(document), InitialLaw::normal);
  };
  BOOST_TEST(!probes_of("x = 1").has_value());
  BOOST_TEST(!shots_of("x = 1").has_value());
  const std::vector<int> positions{2, 5, 10, 20, 50};
  BOOST_TEST(probes_of("[probes]")->positions == positions, boost::test_tools::per_element());
  BOOST_TEST((shots_of("[few_shot]")->inputs == InitialLaw::normal));
  const std::string probes_text =
      "\n[probes]\nsequences = 300\npositions = [3, 50]\nridge = 1e-06\nlambda = 4.0\npast = 2\n"
      "sensitivity_sequences = 0\nseed = 9\n";
  const std::string shots_text =
      "\n[few_shot]\npairs = 4\ninputs = \"uniform\"\nsequences = 10\nbatch = 3\nsteps = 0\n"
      "learning_rate_eos = 0.25\nlearning_rate_prefix = 0.5\nprefix = 0\ninitial_deviation = 0.125\nlambda = 8.0\n"
      "seed = 9\n";
  TomlText text;
  resolve(*probes_of(probes_text), text);
  resolve(*shots_of(shots_text), text);
  BOOST_TEST(text.text().substr(text.text().find('[')) == (probes_text + shots_text).substr(1));
  for (const char* wrong :
       {"positions = [51]", "positions = [0]", "sequences = 10", "lambda = 0", "lambda = 1e10", "x = 1"}) {
    BOOST_CHECK_THROW(static_cast<void>(probes_of(std::string("[probes]\n") + wrong)), InputError);
  }
  for (const char* wrong : {"pairs = 0", "inputs = \"x\"", "batch = 0", "prefix = -1", "steps = 1.5", "x = 1"}) {
    BOOST_CHECK_THROW(static_cast<void>(shots_of(std::string("[few_shot]\n") + wrong)), InputError);
  }
}

BOOST_AUTO_TEST_SUITE_END()
