#include "iclflow/mesa/training_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/analysis/estimate.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/mesa/baselines.hpp"
#include "iclflow/mesa/few_shot.hpp"
#include "iclflow/mesa/probes.hpp"
#include "training_figures.hpp"
#include "training_sizes.hpp"
#include "training_study.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// Mean over t of half the squared state, the loss of predicting 0; and for any predictions, by position.
std::vector<double> losses_by_position(const StackBatch& batch, const std::vector<double>& predictions) {
  std::vector<double> losses(static_cast<std::size_t>(batch.length));
  const std::size_t n = batch.targets.size() / (batch.count * losses.size());
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    const double error = batch.targets[i] - (predictions.empty() ? 0.0 : predictions[i]);
    losses[i / n % losses.size()] += 0.5 * error * error / static_cast<double>(batch.count);
  }
  return losses;
}

/// Linear layers on constructed tokens, whose products say all.
bool linear(const StackShape& shape) {
  return shape.tokens == TokenKind::constructed &&
         std::all_of(shape.layers.begin(), shape.layers.end(),
                     [](LayerKind kind) { return kind == LayerKind::linear; });
}

StackBatch evaluation_batch(const AutoregressiveProblem& problem, const TrainingOptions& options) {
  return batch_of(draw_sequences(problem.sequence, options.evaluation_seed, Stream::evaluation, 0, 0,
                                 static_cast<std::size_t>(options.evaluation_sequences)));
}

double zero_loss(const StackBatch& batch) {
  const std::vector<double> losses = losses_by_position(batch, {});
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

/// Seeds' mean at every record, and its share of the loss of predicting 0 on the same sequences: what curves of other
/// test sets can be compared with.
Json mean_curve(const DynamicsResult& result, double zero) {
  Json curve = Json::array();
  const Band band = seed_band(result, "loss");
  for (std::size_t k = 0; k < band.times.size(); ++k) {
    const double error = band.standard_error[k];
    const bool known = result.members.size() > 1 && std::isfinite(error);
    curve.push_back({{"name", fmt::format("{}", band.times[k])},
                     {"loss", band.mean[k]},
                     {"loss_standard_error", known ? Json(error) : Json(nullptr)},
                     {"share", band.mean[k] / zero},
                     {"share_standard_error", known ? Json(error / zero) : Json(nullptr)}});
  }
  return curve;
}

/// Loss of the finished weights at every position, mean over seeds.
Json final_positions(const AutoregressiveProblem& problem, const TrainingOptions& options, const DynamicsResult& result,
                     const StackBatch& batch, int threads) {
  const auto stack = make_stack(problem.shape, options.precision, threads);
  std::vector<std::vector<double>> seeds;
  for (const Eigen::VectorXd& parameters : result.final_states) {
    seeds.push_back(losses_by_position(batch, stack->predictions(parameters, batch)));
  }
  const std::vector<double> zero = losses_by_position(batch, {});
  Json json;
  for (std::size_t t = 0; t < zero.size(); ++t) {
    std::vector<double> values;
    for (const auto& seed : seeds) values.push_back(seed[t]);
    const Estimate estimate = mean_estimate(values);
    json["loss"].push_back(estimate.value);
    json["loss_standard_error"].push_back(or_null(estimate.standard_error));
    json["zero"].push_back(zero[t]);
  }
  return {{"evaluation_zero_loss", zero_loss(batch)}, {"positions", std::move(json)}};
}

}  // namespace

TrainingStudy::TrainingStudy(AutoregressiveProblem problem, TrainingOptions options, TrainedMeasurements measurements)
    : problem_(std::move(problem)), options_(std::move(options)), measurements_(std::move(measurements)) {
  parts_.push_back({"training", "training", "adamw", options_.seeds, false, "training"});
}

std::size_t TrainingStudy::values_per_sample(std::size_t) const {
  return 1 + (options_.keep_parameters ? static_cast<std::size_t>(StackLayout::of(problem_.shape).size) : 0);
}

std::vector<std::string_view> TrainingStudy::figures() const {
  std::vector<std::string_view> names{"training", "positions"};
  if (problem_.shape.tokens == TokenKind::constructed) names.emplace_back("weights");
  if (measurements_.probes) names.emplace_back("probes");
  if (measurements_.few_shot) names.emplace_back("few-shot");
  return names;
}

void TrainingStudy::resolve(TomlText& text) const {
  iclflow::resolve(problem_, text);
  iclflow::resolve(options_, text);
  if (measurements_.baselines) iclflow::resolve(*measurements_.baselines, text);
  if (measurements_.one_step) iclflow::resolve(*measurements_.one_step, text);
  if (measurements_.compression) iclflow::resolve(*measurements_.compression, text);
  if (measurements_.probes) iclflow::resolve(*measurements_.probes, text);
  if (measurements_.few_shot) iclflow::resolve(*measurements_.few_shot, text);
}

Json TrainingStudy::problem() const {
  const SequenceProblem& sequence = problem_.sequence;
  const StackShape& shape = problem_.shape;
  Json layers = Json::array();
  for (const LayerKind kind : shape.layers) layers.push_back(layer_kind_name(kind));
  return {{"sequence", sequence_kind_name(sequence.kind)},
          {"state_dimension", sequence.state_dimension},
          {"hidden_dimension", sequence.hidden_dimension},
          {"length", sequence.length},
          {"noise_deviation", sequence.noise_deviation},
          {"tokens", shape.tokens == TokenKind::constructed ? "constructed" : "raw"},
          {"layers", layers},
          {"width", shape.width},
          {"heads", shape.heads},
          {"key_dimension", shape.key_dimension},
          {"clip", shape.clip},
          {"parameters", StackLayout::of(shape).size}};
}

Json TrainingStudy::predict() const {
  BaselinePlan plan;
  plan.clip = problem_.shape.clip;
  if (measurements_.baselines) plan = *measurements_.baselines;
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return {{"baselines", sampled_baselines(plan, problem_.sequence, threads, {})}};
}

std::string TrainingStudy::describe_prediction() const { return describe_baselines(predict().at("baselines")); }

Json TrainingStudy::optimum(int) const {
  throw InputError(
      "optimum searches the weights of regression problems and of two-parameter flows; a stack is trained");
}

std::string TrainingStudy::describe_optimum(const Json&) const { return {}; }

Outcome TrainingStudy::evolve(std::size_t, std::size_t member, const std::vector<double>&,
                              const std::vector<Event>& events, int threads, const Control& control) const {
  const StackTraining training(problem_.sequence, problem_.shape, options_, options_.seeds.at(member), threads,
                               options_.keep_parameters);
  AdamRule rule(options_.adam);
  return descend(training, rule, recorded_steps(options_), events, control);
}

Evaluated TrainingStudy::evaluate_final(const std::vector<DynamicsResult>& results,
                                        const EvaluationControl& control) const {
  Evaluated evaluated;
  if (control.kept.is_object()) evaluated.keys = control.kept;
  const auto interrupted = [&control] { return control.interrupted && control.interrupted(); };
  /// Measures what an earlier attempt has not; a part that was interrupted is null.
  const auto measure = [&](const std::string& key, const auto& part) {
    if (!evaluated.whole || evaluated.keys.contains(key)) return;
    Json value = interrupted() ? Json(nullptr) : part();
    evaluated.whole = !value.is_null();
    if (!evaluated.whole) return;
    evaluated.keys[key] = std::move(value);
    if (control.keep) control.keep(evaluated.keys);
  };
  const DynamicsResult& result = results.front();
  const StackBatch batch = evaluation_batch(problem_, options_);
  measure("final", [&] { return final_positions(problem_, options_, result, batch, control.threads); });
  if (measurements_.baselines) {
    measure("baselines", [&] {
      return sampled_baselines(*measurements_.baselines, problem_.sequence, control.threads, interrupted);
    });
  }
  if (measurements_.one_step) {
    measure("one_step", [&] {
      return one_step_of_training(*measurements_.one_step, problem_.sequence, problem_.shape, result, control.threads,
                                  interrupted);
    });
  }
  if (measurements_.compression) {
    measure("compressed", [&] {
      return compression_of_training(*measurements_.compression, problem_.shape, result, batch, control.threads,
                                     interrupted);
    });
  }
  if (measurements_.probes) {
    measure("probes", [&] {
      return probes(problem_.sequence, problem_.shape, result.final_states.front(), *measurements_.probes,
                    control.threads, interrupted);
    });
  }
  if (measurements_.few_shot) {
    measure("few_shot", [&] {
      const auto stack = make_stack(problem_.shape, options_.precision, control.threads);
      return few_shot(*stack, result.final_states.front(), *measurements_.few_shot, interrupted);
    });
  }
  return evaluated;
}

Json TrainingStudy::summarise(const std::vector<DynamicsResult>& results) const {
  Json json;
  json["training"] = Json::array();
  std::vector<double> finals;
  double seconds = 0.0;
  std::uint64_t gradients = 0;
  for (const DynamicsResult& result : results) {
    for (std::size_t m = 0; m < result.members.size(); ++m) {
      const Trajectory& member = result.members[m];
      const auto& loss = member["loss"].values;
      for (std::size_t k = 0; k < member.samples(); ++k) {
        json["training"].push_back({{"seed", result.seeds.at(m)}, {"step", member.times[k]}, {"loss", loss[k]}});
      }
      if (!loss.empty()) finals.push_back(loss.back());
    }
    seconds += result.wall_seconds;
    gradients += result.evaluations;
  }
  if (!finals.empty()) add_estimate(json, "final_loss", mean_estimate(finals));
  if (!results.empty()) json["curve"] = mean_curve(results.front(), zero_loss(evaluation_batch(problem_, options_)));
  json["gradients"] = gradients;
  json["wall_seconds"] = seconds;
  return json;
}

std::vector<DrawnFigure> TrainingStudy::draw(const std::vector<DynamicsResult>& results, const Json& summary,
                                             const FigureRequest& request) const {
  std::vector<DrawnFigure> drawn;
  for (const std::string& kind : request.figures) {
    drawn.push_back(draw_training_figure(kind, {problem_.shape, results, summary, request.title}, request.folder));
  }
  return drawn;
}

std::unique_ptr<Study> make_training_study(const Section& root) {
  if (root.has("time")) {
    root.fail("time", "does not belong to a training", "[training] with steps and record_every");
  }
  AutoregressiveProblem problem = read_autoregressive_problem(root);
  const Section section = root.section("training");
  TrainingOptions options = read_training(section, problem.shape);
  TrainedMeasurements measurements{read_baselines(root, problem.shape.clip), read_one_step(root),
                                   read_compression(root), read_probes(root, problem.sequence.length),
                                   read_few_shot(root, problem.sequence.initial)};
  if (measurements.one_step && !(linear(problem.shape) && problem.shape.layers.size() == 1)) {
    root.fail("one_step", "compares one layer with one gradient step", "one linear layer on constructed tokens");
  }
  if (measurements.compression && !linear(problem.shape)) {
    root.fail("compression", "needs products of weights", "linear layers on constructed tokens");
  }
  if (measurements.compression && measurements.compression->along && !options.keep_parameters) {
    root.fail("compression", "along the training needs the recorded weights",
              "along = false, or training.keep_parameters = true");
  }
  check_sizes(root, problem, options, measurements);
  return std::make_unique<TrainingStudy>(std::move(problem), std::move(options), std::move(measurements));
}

}  // namespace iclflow
