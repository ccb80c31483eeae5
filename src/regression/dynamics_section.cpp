#include "iclflow/regression/dynamics_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace iclflow {

namespace {

constexpr std::int64_t largest_seed = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t largest_seed_count = 10'000;
constexpr std::int64_t largest_context_count = 100'000'000;

const StepperInfo& stepper_named(std::string_view name) {
  return *std::find_if(steppers().begin(), steppers().end(), [&](const auto& info) { return info.name == name; });
}

StepperOptions read_stepper(const Section& section, double final_time, bool jacobian) {
  Choices choices;
  for (const StepperInfo& info : steppers()) {
    if (jacobian || !info.implicit) choices.allowed.push_back(info.name);
  }
  StepperOptions options;
  if (!has_cvode() && section.has("stepper") && section.text("stepper") == "cvode") {
    section.fail("stepper", "\"cvode\" is not in this build: SUNDIALS was not found when it was configured",
                 "install libsundials-dev and configure again, or \"auto\"");
  }
  options.stepper = section.choice("stepper", choices, "dopri5");
  if (!stepper_named(options.stepper).adaptive) options.step = section.number("step", Sign::positive);
  options.relative_tolerance = section.number("relative_tolerance", Sign::positive, options.relative_tolerance);
  if (options.relative_tolerance >= 1.0) {
    section.fail("relative_tolerance", fmt::format("impossible value ({})", options.relative_tolerance),
                 "a number above 0 and below 1");
  }
  options.absolute_tolerance = section.number("absolute_tolerance", Sign::positive, options.absolute_tolerance);
  options.minimum_step = section.number("minimum_step", Sign::non_negative, 0.0);
  options.maximum_step = section.number("maximum_step", Sign::positive, final_time > 0.0 ? final_time : 1.0);
  if (options.maximum_step < options.minimum_step) {
    section.fail("maximum_step", fmt::format("impossible value ({})", options.maximum_step),
                 fmt::format("a number of at least minimum_step ({})", options.minimum_step));
  }
  options.maximum_steps = static_cast<std::uint64_t>(
      section.integer("maximum_steps", 1, largest_seed, static_cast<std::int64_t>(options.maximum_steps)));
  if (!stepper_named(options.stepper).adaptive &&
      final_time / options.step > static_cast<double>(options.maximum_steps)) {
    section.fail("step",
                 fmt::format("impossible value ({}): more than maximum_steps ({}) to time.final", options.step,
                             options.maximum_steps),
                 "a longer step, or more maximum_steps");
  }
  options.maximum_rejections = static_cast<std::uint64_t>(
      section.integer("maximum_rejections", 1, largest_seed, static_cast<std::int64_t>(options.maximum_rejections)));
  return options;
}

void resolve_stepper(const StepperOptions& options, TomlText& text) {
  text.put("stepper", options.stepper);
  if (!stepper_named(options.stepper).adaptive) text.put("step", options.step);
  text.put("relative_tolerance", options.relative_tolerance);
  text.put("absolute_tolerance", options.absolute_tolerance);
  text.put("minimum_step", options.minimum_step);
  text.put("maximum_step", options.maximum_step);
  text.put("maximum_steps", options.maximum_steps);
  text.put("maximum_rejections", options.maximum_rejections);
}

std::vector<std::uint64_t> read_seeds(const Section& section, bool single_allowed) {
  if (single_allowed && section.has("seed") && !section.has("seeds")) {
    return {static_cast<std::uint64_t>(section.integer("seed", 0, largest_seed))};
  }
  if (!section.has("seeds")) return {1};
  std::vector<std::uint64_t> seeds;
  for (const std::int64_t seed : section.integers("seeds", 0, largest_seed, largest_seed_count)) {
    seeds.push_back(static_cast<std::uint64_t>(seed));
  }
  if (std::set<std::uint64_t>(seeds.begin(), seeds.end()).size() != seeds.size()) {
    section.fail("seeds", "holds a seed twice", "different integers");
  }
  return seeds;
}

Closure read_closure(const Section& section) {
  Closure closure;
  closure.name = section.choice("closure", {closures()}, closure.name);
  if (closure.name == "sampled") {
    closure.sampled.contexts = static_cast<int>(
        section.integer("contexts", SampledLoss::smallest, largest_context_count, closure.sampled.contexts));
    closure.sampled.seed = static_cast<std::uint64_t>(section.integer("seed", 0, largest_seed, 0));
  }
  return closure;
}

void read_evaluation_set(const Section& section, RegressionDynamics& dynamics) {
  dynamics.estimator = section.choice("estimator", {{"tokens", "score-space"}}, "tokens");
  const bool score_space = dynamics.estimator == "score-space";
  if (score_space && dynamics.method == Method::gradient_flow) {
    section.fail("estimator", "\"score-space\" at fixed contexts is not the gradient of a loss",
                 "\"tokens\", or method = \"sgd\"");
  }
  dynamics.simulation.estimator = score_space ? GradientEstimator::score_space : GradientEstimator::tokens;
  dynamics.simulation.precision = section.choice("precision", {{"double", "single"}}, "double") == "double"
                                      ? Precision::double_precision
                                      : Precision::single_precision;
  dynamics.simulation.evaluation_contexts =
      static_cast<int>(section.integer("evaluation_contexts", 1, largest_context_count, 20000));
}

void read_attention(const Section& section, double final_time, RegressionDynamics& dynamics) {
  const bool sgd = section.choice("method", {{"sgd", "gradient-flow"}}, "sgd") == "sgd";
  dynamics.method = sgd ? Method::sgd : Method::gradient_flow;
  if (sgd) {
    dynamics.learning_rate = section.number("learning_rate", Sign::positive);
  } else {
    dynamics.stepper = read_stepper(section, final_time, false);
    dynamics.simulation.symmetrised = section.boolean("symmetrised", false);
  }
  dynamics.simulation.batch = static_cast<int>(section.integer("batch", 1, largest_context_count, 1000));
  dynamics.seeds = read_seeds(section, !sgd);
  read_evaluation_set(section, dynamics);
}

}  // namespace

DynamicsPart RegressionDynamics::part() const {
  return {name, kind, kind == "spectral-flow" ? closure.name : estimator, seeds, kind != "fixed"};
}

RegressionDynamics read_dynamics(const Section& section, double final_time) {
  RegressionDynamics dynamics;
  dynamics.kind = section.choice("kind", {{"spectral-flow", "attention", "fixed"}});
  dynamics.name = section.text("name", dynamics.kind);
  if (dynamics.kind == "spectral-flow") {
    dynamics.closure = read_closure(section);
    dynamics.stepper = read_stepper(section, final_time, true);
  } else if (dynamics.kind == "attention") {
    read_attention(section, final_time, dynamics);
  } else {
    dynamics.method = Method::fixed;
    read_evaluation_set(section, dynamics);
  }
  section.finish();
  return dynamics;
}

void RegressionDynamics::resolve(TomlText& text) const {
  text.element("dynamics");
  text.put("name", name);
  text.put("kind", kind);
  if (kind == "spectral-flow") {
    text.put("closure", closure.name);
    if (closure.name == "sampled") {
      text.put("contexts", closure.sampled.contexts);
      text.put("seed", closure.sampled.seed);
    }
  }
  if (method == Method::sgd) {
    text.put("method", "sgd");
    text.put("learning_rate", learning_rate);
  }
  if (method == Method::gradient_flow) {
    text.put("method", "gradient-flow");
    text.put("symmetrised", simulation.symmetrised);
  }
  if (method == Method::reduced_flow || method == Method::gradient_flow) resolve_stepper(stepper, text);
  if (kind == "spectral-flow") return;
  if (kind == "attention") {
    text.put("batch", simulation.batch);
    text.put("seeds", seeds);
  }
  text.put("estimator", estimator);
  text.put("precision", simulation.precision == Precision::double_precision ? "double" : "single");
  text.put("evaluation_contexts", simulation.evaluation_contexts);
}

}  // namespace iclflow
