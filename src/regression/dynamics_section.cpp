#include "iclflow/regression/dynamics_section.hpp"

#include "iclflow/experiment/stepper_section.hpp"

namespace iclflow {

namespace {

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
