#include "iclflow/mesa/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "iclflow/experiment/stepper_section.hpp"

namespace iclflow {

namespace {

constexpr std::array<std::pair<std::string_view, SequenceKind>, 5> sequence_kinds{
    {{"orthogonal", SequenceKind::orthogonal},
     {"partial", SequenceKind::partial},
     {"nonlinear", SequenceKind::nonlinear},
     {"contracting", SequenceKind::contracting},
     {"fixed", SequenceKind::fixed}}};
constexpr std::array<std::pair<std::string_view, LayerKind>, 3> layer_kinds{
    {{"linear", LayerKind::linear}, {"softmax", LayerKind::softmax}, {"mesa", LayerKind::mesa}}};

constexpr std::int64_t largest_dimension = 4096;

template <typename Kinds>
Choices choices_of(const Kinds& kinds) {
  Choices choices;
  for (const auto& [name, kind] : kinds) choices.allowed.push_back(name);
  return choices;
}

template <typename Kinds, typename Kind>
std::string_view name_of(const Kinds& kinds, Kind kind) {
  return std::find_if(kinds.begin(), kinds.end(), [&](const auto& pair) { return pair.second == kind; })->first;
}

template <typename Kinds>
auto kind_of(const Kinds& kinds, std::string_view name) {
  return std::find_if(kinds.begin(), kinds.end(), [&](const auto& pair) { return pair.first == name; })->second;
}

int size(const Section& section, std::string_view key, std::int64_t low, std::int64_t fallback) {
  return static_cast<int>(section.integer(key, low, largest_dimension, fallback));
}

/// Of states of order one; their sixth moments must be numbers.
double deviation(const Section& section, std::string_view key, double fallback) {
  constexpr double largest = 1000.0;
  const double value = section.number(key, Sign::non_negative, fallback);
  if (value > largest) {
    section.fail(key, fmt::format("impossible value ({})", value), fmt::format("numbers from 0 to {}", largest));
  }
  return value;
}

SequenceProblem read_sequence(const Section& section, StackShape& shape) {
  SequenceProblem problem;
  problem.kind = kind_of(sequence_kinds, section.choice("kind", choices_of(sequence_kinds), "orthogonal"));
  const bool partial = problem.kind == SequenceKind::partial;
  problem.state_dimension = size(section, "state_dimension", 1, partial ? 5 : 10);
  problem.hidden_dimension = problem.state_dimension;
  if (partial) problem.hidden_dimension = size(section, "hidden_dimension", problem.state_dimension, 15);
  problem.length = size(section, "length", 1, 50);
  problem.noise_deviation = deviation(section, "noise_deviation", 0.01);
  problem.observation_noise_deviation = deviation(section, "observation_noise_deviation", 0.0);
  problem.initial = section.choice("initial", {{"uniform", "normal"}}, "uniform") == "uniform" ? InitialLaw::uniform
                                                                                               : InitialLaw::normal;
  if (problem.kind == SequenceKind::nonlinear) problem.teacher_width = size(section, "teacher_width", 1, 300);
  if (problem.kind == SequenceKind::nonlinear || problem.kind == SequenceKind::fixed) {
    problem.teacher_seed = static_cast<std::uint64_t>(section.integer("teacher_seed", 0, largest_seed, 1));
  }
  const bool constructed = section.choice("tokens", {{"constructed", "raw"}}, "constructed") == "constructed";
  shape.tokens = constructed ? TokenKind::constructed : TokenKind::raw;
  section.finish();
  return problem;
}

void read_layers(const Section& section, StackShape& shape) {
  shape.layers.clear();
  constexpr std::size_t most_layers = 64;
  const std::vector<std::string> names = section.texts("layers");
  if (names.empty() || names.size() > most_layers) {
    section.fail("layers", fmt::format("impossible value ({} layers)", names.size()),
                 fmt::format("1 to {} layers", most_layers));
  }
  for (const std::string& name : names) {
    const Choices choices = choices_of(layer_kinds);
    if (std::find(choices.allowed.begin(), choices.allowed.end(), name) == choices.allowed.end()) {
      section.fail("layers", fmt::format("unknown value ({})", TomlText::quoted(name)), listed(choices.allowed));
    }
    shape.layers.push_back(kind_of(layer_kinds, name));
  }
}

void read_mesa(const Section& section, StackShape& shape) {
  shape.forgetting = section.boolean("forgetting", false);
  const bool direct = section.choice("solver", {{"rank-one", "conjugate-gradients"}},
                                     shape.forgetting ? "conjugate-gradients" : "rank-one") == "rank-one";
  shape.solver = direct ? MesaSolver::rank_one : MesaSolver::conjugate_gradients;
  if (direct && shape.forgetting) {
    section.fail("solver", "\"rank-one\" with forgetting would forget its prior too", "\"conjugate-gradients\"");
  }
  if (!direct) shape.solver_iterations = size(section, "solver_iterations", 1, 30);
}

void read_model(const Section& section, StackShape& shape) {
  read_layers(section, shape);
  const bool constructed = shape.tokens == TokenKind::constructed;
  const int n = shape.state_dimension;
  const bool one = shape.layers.size() == 1;
  shape.width = constructed ? 4 * n : size(section, "width", 1, 40);
  shape.position_dimension = constructed ? 0 : size(section, "position_dimension", 0, 40);
  if (shape.position_dimension % 2 != 0) {
    section.fail("position_dimension", fmt::format("impossible value ({})", shape.position_dimension), "even numbers");
  }
  shape.heads = size(section, "heads", 1, one ? 2 : 4);
  shape.key_dimension = size(section, "key_dimension", 1, 20);
  const bool linear = std::find(shape.layers.begin(), shape.layers.end(), LayerKind::linear) != shape.layers.end();
  shape.clip = section.number("clip", Sign::non_negative, !linear ? 0.0 : one ? 4.0 : 1.5);
  shape.mask_second = constructed && section.boolean("mask_second", one);
  const bool plain =
      std::all_of(shape.layers.begin(), shape.layers.end(), [](auto k) { return k == LayerKind::linear; });
  if (!plain) shape.normalise_keys = section.boolean("normalise_keys", false);
  if (std::find(shape.layers.begin(), shape.layers.end(), LayerKind::mesa) != shape.layers.end()) {
    read_mesa(section, shape);
  }
  section.finish();
}

std::uint64_t count(const Section& section, std::string_view key, std::int64_t low, std::uint64_t fallback) {
  constexpr std::int64_t most_steps = 4'000'000'000;  // sequences are keyed by a 32 bit step number
  return static_cast<std::uint64_t>(section.integer(key, low, most_steps, static_cast<std::int64_t>(fallback)));
}

void read_schedule(const Section& section, LearningRate& rate) {
  rate.peak = section.number("learning_rate", Sign::positive, rate.peak);
  rate.warm_up = count(section, "warm_up", 0, rate.warm_up);
  rate.decay_end = count(section, "decay_end", 0, rate.decay_end);
  if (rate.decay_end > 0 && rate.decay_end <= rate.warm_up) {
    section.fail("decay_end", fmt::format("impossible value ({})", rate.decay_end),
                 fmt::format("0 for a constant rate, or more than warm_up ({})", rate.warm_up));
  }
  rate.final = rate.decay_end > 0 ? section.number("final_learning_rate", Sign::non_negative, rate.final) : 0.0;
}

}  // namespace

std::string_view sequence_kind_name(SequenceKind kind) { return name_of(sequence_kinds, kind); }
std::string_view layer_kind_name(LayerKind kind) { return name_of(layer_kinds, kind); }

AutoregressiveProblem read_autoregressive_problem(const Section& root) {
  AutoregressiveProblem problem;
  problem.sequence = read_sequence(root.section("sequence"), problem.shape);
  problem.shape.state_dimension = problem.sequence.state_dimension;
  read_model(root.section("model"), problem.shape);
  return problem;
}

void resolve(const AutoregressiveProblem& problem, TomlText& text) {
  const SequenceProblem& sequence = problem.sequence;
  const StackShape& shape = problem.shape;
  const bool constructed = shape.tokens == TokenKind::constructed;
  text.table("sequence");
  text.put("kind", sequence_kind_name(sequence.kind));
  text.put("state_dimension", sequence.state_dimension);
  if (sequence.kind == SequenceKind::partial) text.put("hidden_dimension", sequence.hidden_dimension);
  text.put("length", sequence.length);
  text.put("noise_deviation", sequence.noise_deviation);
  text.put("observation_noise_deviation", sequence.observation_noise_deviation);
  text.put("initial", sequence.initial == InitialLaw::uniform ? "uniform" : "normal");
  if (sequence.kind == SequenceKind::nonlinear) text.put("teacher_width", sequence.teacher_width);
  if (sequence.kind == SequenceKind::nonlinear || sequence.kind == SequenceKind::fixed) {
    text.put("teacher_seed", sequence.teacher_seed);
  }
  text.put("tokens", constructed ? "constructed" : "raw");
  text.table("model");
  std::vector<std::string> layers;
  for (const LayerKind kind : shape.layers) layers.emplace_back(layer_kind_name(kind));
  text.put("layers", layers);
  if (!constructed) {
    text.put("width", shape.width);
    text.put("position_dimension", shape.position_dimension);
  }
  text.put("heads", shape.heads);
  text.put("key_dimension", shape.key_dimension);
  text.put("clip", shape.clip);
  if (constructed) text.put("mask_second", shape.mask_second);
  const auto has = [&](LayerKind kind) {
    return std::find(shape.layers.begin(), shape.layers.end(), kind) != shape.layers.end();
  };
  if (has(LayerKind::softmax) || has(LayerKind::mesa)) text.put("normalise_keys", shape.normalise_keys);
  if (!has(LayerKind::mesa)) return;
  text.put("forgetting", shape.forgetting);
  text.put("solver", shape.solver == MesaSolver::rank_one ? "rank-one" : "conjugate-gradients");
  if (shape.solver != MesaSolver::rank_one) text.put("solver_iterations", shape.solver_iterations);
}

TrainingOptions read_training(const Section& section, const StackShape& shape) {
  TrainingOptions options;
  options.steps = count(section, "steps", 1, options.steps);
  options.batch = static_cast<int>(section.integer("batch", 1, 1'000'000, options.batch));
  read_schedule(section, options.adam.rate);
  options.adam.weight_decay = section.number("weight_decay", Sign::non_negative, options.adam.weight_decay);
  options.adam.epsilon = section.number("epsilon", Sign::positive, options.adam.epsilon);
  options.adam.gradient_clip = section.number("gradient_clip", Sign::non_negative, options.adam.gradient_clip);
  options.initial_deviation =
      section.number("initial_deviation", Sign::positive, shape.tokens == TokenKind::constructed ? 2e-4 : 0.05);
  options.precision = section.choice("precision", {{"single", "double"}}, "single") == "single"
                          ? StackPrecision::single_precision
                          : StackPrecision::double_precision;
  options.seeds = read_seeds(section, true);
  options.record_every = count(section, "record_every", 1, options.record_every);
  options.evaluation_sequences =
      static_cast<int>(section.integer("evaluation_sequences", 1, 10'000'000, options.evaluation_sequences));
  options.evaluation_seed = static_cast<std::uint64_t>(section.integer("evaluation_seed", 0, largest_seed, 1));
  options.keep_parameters = section.boolean("keep_parameters", true);
  section.finish();
  return options;
}

void resolve(const TrainingOptions& options, TomlText& text) {
  text.table("training");
  text.put("steps", options.steps);
  text.put("batch", options.batch);
  text.put("learning_rate", options.adam.rate.peak);
  text.put("warm_up", options.adam.rate.warm_up);
  text.put("decay_end", options.adam.rate.decay_end);
  if (options.adam.rate.decay_end > 0) text.put("final_learning_rate", options.adam.rate.final);
  text.put("weight_decay", options.adam.weight_decay);
  text.put("epsilon", options.adam.epsilon);
  text.put("gradient_clip", options.adam.gradient_clip);
  text.put("initial_deviation", options.initial_deviation);
  text.put("precision", options.precision == StackPrecision::single_precision ? "single" : "double");
  text.put("seeds", options.seeds);
  text.put("record_every", options.record_every);
  text.put("evaluation_sequences", options.evaluation_sequences);
  text.put("evaluation_seed", options.evaluation_seed);
  text.put("keep_parameters", options.keep_parameters);
}

}  // namespace iclflow
