#include "regression_study.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "iclflow/integrate/descent.hpp"
#include "iclflow/problem/quantity.hpp"
#include "iclflow/regression/bounded_flow.hpp"
#include "iclflow/regression/figures.hpp"
#include "iclflow/regression/flow_phases.hpp"
#include "iclflow/regression/loss_ratios.hpp"
#include "iclflow/regression/prediction.hpp"
#include "iclflow/regression/problem_section.hpp"
#include "iclflow/regression/summary.hpp"
#include "iclflow/spectral/emergence_order.hpp"

namespace iclflow {

RegressionStudy::RegressionStudy(Problem problem, Start start, std::vector<RegressionDynamics> dynamics,
                                 bool logarithmic_time, Measurements measurements)
    : problem_(std::move(problem)),
      start_(std::move(start)),
      dynamics_(std::move(dynamics)),
      logarithmic_time_(logarithmic_time),
      measurements_(std::move(measurements)) {
  for (const RegressionDynamics& one : dynamics_) parts_.push_back(one.part());
}

bool RegressionStudy::has_kind(std::string_view kind) const {
  return std::any_of(dynamics_.begin(), dynamics_.end(), [&](const auto& one) { return one.kind == kind; });
}

const RegressionDynamics& RegressionStudy::named(const std::string& name) const {
  return *std::find_if(dynamics_.begin(), dynamics_.end(), [&](const auto& one) { return one.name == name; });
}

std::size_t RegressionStudy::values_per_sample(std::size_t k) const {
  const auto heads = static_cast<std::size_t>(problem_.heads);
  const auto tasks = static_cast<std::size_t>(problem_.tasks());
  const std::size_t spectrum = heads * (2 * tasks + static_cast<std::size_t>(problem_.dimension()));
  return spectrum + (dynamics_.at(k).method == Method::reduced_flow ? 2 + tasks : 6);
}

void RegressionStudy::check_times(std::size_t k, const std::vector<double>& times) const {
  const RegressionDynamics& one = dynamics_.at(k);
  if (one.method != Method::sgd) return;
  static_cast<void>(sample_steps(times, one.learning_rate));
}

std::string RegressionStudy::quantities() const {
  return "\"loss\", \"mu[h][i]\", \"omega[h][i]\" with h = 0.." + std::to_string(problem_.heads - 1) + ", i = 0.." +
         std::to_string(problem_.tasks() - 1);
}

bool RegressionStudy::has_quantity(const std::string& quantity) const {
  try {
    static_cast<void>(parse_quantity(quantity, problem_.heads, problem_.tasks()));
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::vector<std::string_view> RegressionStudy::figures() const {
  std::vector<std::string_view> names{"allocation"};
  if (has_kind("spectral-flow") || has_kind("attention")) names = {"loss", "spectrum", "allocation"};
  if (has_kind("attention")) names.emplace_back("leakage");
  if (measurements_.evaluation) names.emplace_back("evaluation");
  return names;
}

std::vector<std::string_view> RegressionStudy::expectations() const {
  if (!has_kind("spectral-flow") || !has_kind("attention")) return {};
  return {"loss_gap", "loss_gap_max", "emergence_time_gap", "mu_gap", "omega_gap"};
}

void RegressionStudy::resolve(TomlText& text) const {
  resolve_problem(problem_, text);
  start_.resolve(text);
  for (const RegressionDynamics& one : dynamics_) one.resolve(text);
  if (measurements_.evaluation) measurements_.evaluation->resolve(text);
  if (measurements_.optimum) measurements_.optimum->resolve(text);
  if (measurements_.stability) measurements_.stability->resolve(text);
  if (measurements_.closures) measurements_.closures->resolve(text);
}

nlohmann::ordered_json RegressionStudy::problem() const { return problem_json(problem_); }

nlohmann::ordered_json RegressionStudy::predict() const { return prediction_json(problem_, start_.spectral()); }

std::string RegressionStudy::describe_prediction() const { return prediction_text(problem_, start_.spectral()); }

Outcome RegressionStudy::evolve_fixed(const RegressionDynamics& one, int threads) const {
  SimulationOptions options = one.simulation;
  options.threads = threads;
  const auto system = make_descent(problem_, start_.layout(), start_.weights(), options);
  Outcome outcome;
  system->declare(outcome.trajectory);
  outcome.trajectory.times.push_back(0.0);
  system->observe(system->initial(), outcome.trajectory);
  outcome.last.state = system->initial();
  return outcome;
}

SpectralFlow RegressionStudy::flow(const RegressionDynamics& one, int threads) const {
  Closure closure = one.closure;
  closure.sampled.threads = threads;
  return make_flow(problem_, start_.spectral(), closure);
}

Outcome RegressionStudy::evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                                const std::vector<Event>& events, int threads, const Control& control) const {
  const RegressionDynamics& one = dynamics_.at(k);
  if (one.method == Method::fixed) return evolve_fixed(one, threads);
  if (one.method == Method::reduced_flow) {
    return integrate_within(flow(one, threads), one.closure.name, times, one.stepper, events, control);
  }
  SimulationOptions options = one.simulation;
  options.seed = one.seeds.at(member);
  options.threads = threads;
  if (one.method == Method::gradient_flow) {
    const auto system = make_gradient_flow(problem_, start_.layout(), start_.perturbed_weights(options.seed), options);
    return integrate(*system, times, one.stepper, events, control);
  }
  const auto system = make_descent(problem_, start_.layout(), start_.perturbed_weights(options.seed), options);
  return descend(*system, one.learning_rate, times, events, control);
}

SpectralState RegressionStudy::final_spectrum(const DynamicsResult& result) const {
  const Trajectory& first = result.members.front();
  const auto matrix = [&](std::string_view name) {
    const std::span<const double> last = first[name].last();
    return Matrix(
        Eigen::Map<const Matrix>(last.data(), problem_.heads, static_cast<Eigen::Index>(last.size()) / problem_.heads));
  };
  return {matrix("mu"), matrix("omega")};
}

/// Final weights of a finished dynamics; a theory's are its embedded final state.
EvaluatedWeights RegressionStudy::final_weights(const DynamicsResult& result, int threads) const {
  EvaluatedWeights weights{result.name, {}};
  weights.spectral = final_spectrum(result);
  if (result.kind == "spectral-flow") {
    weights.closure = named(result.name).closure;
    weights.closure->sampled.threads = threads;
    const InitialState end = balanced_start(problem_, weights.spectral.mu, weights.spectral.omega);
    const Eigen::VectorXd embedded = embed(problem_, rotations(problem_), end);
    weights.members.push_back(acting(WeightLayout::of(problem_), embedded));
    return weights;
  }
  if (result.kind == "fixed") weights.closure.emplace();  // large-context
  for (const Eigen::VectorXd& state : result.final_states) {
    weights.members.push_back(acting(start_.layout(), state));
  }
  return weights;
}

nlohmann::ordered_json RegressionStudy::optimum(int threads) const {
  return optimum_json(problem_, measurements_.optimum.value_or(OptimumPlan{}), threads);
}

std::string RegressionStudy::describe_optimum(const nlohmann::ordered_json& optimum) const {
  return optimum_text(optimum);
}

nlohmann::ordered_json RegressionStudy::stability(const std::vector<DynamicsResult>& results, int threads,
                                                  bool theory_only) const {
  StabilityPlan plan = *measurements_.stability;
  if (theory_only) plan.saddle.modes = 0;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const DynamicsResult& result : results) {
    if (result.kind == "spectral-flow") {
      json[result.name] =
          linear_stability_json(problem_, plan, named(result.name).closure, final_spectrum(result), threads);
    } else if (result.kind == "attention") {
      json[result.name] = escape_json(problem_, plan, result);
    }
  }
  return json;
}

Evaluated RegressionStudy::evaluate_final(const std::vector<DynamicsResult>& results,
                                          const EvaluationControl& control) const {
  Evaluated all;
  if (measurements_.evaluation) {
    std::vector<EvaluatedWeights> weights;
    for (const DynamicsResult& result : results) weights.push_back(final_weights(result, control.threads));
    all = evaluate_weights(problem_, *measurements_.evaluation, weights, control);
  }
  if (all.whole && measurements_.optimum) all.keys["optimum"] = optimum(control.threads);
  if (all.whole && measurements_.stability)
    all.keys["stability"] = stability(results, control.threads, control.theory_only);
  if (all.whole && measurements_.closures && !control.theory_only) {
    const Evaluated table = evaluate_closures(problem_, *measurements_.closures, control);
    all.keys.update(table.keys);
    all.whole = table.whole;
  }
  return all;
}

nlohmann::ordered_json RegressionStudy::summarise(const std::vector<DynamicsResult>& results) const {
  const auto whole = [](const DynamicsResult& r) { return !r.interrupted && r.failure.empty(); };
  const auto is_theory = [&](const DynamicsResult& r) { return r.kind == "spectral-flow" && whole(r); };
  const auto first_theory = std::find_if(results.begin(), results.end(), is_theory);
  nlohmann::ordered_json json;
  json["dynamics"] = nlohmann::ordered_json::array();
  for (const DynamicsResult& result : results) {
    DynamicsSummary summary{&result};
    summary.initial_mu = &start_.spectral().mu;
    summary.order = emergence_order(problem_, start_.spectral());
    if (is_theory(result)) {
      const Trajectory& run = result.members.front();
      const RegressionDynamics& one = named(result.name);
      summary.end_loss = run["loss"].last()[0];
      summary.exact_phases =
          locate_phases(flow(one, 1), one.stepper, run.times.back(), run["loss"].at(0)[0], *summary.end_loss);
    } else if (result.kind == "attention" && first_theory != results.end()) {
      summary.end_loss = first_theory->members.front()["loss"].last()[0];
    } else if (result.kind == "attention" && whole(result) && !has_kind("spectral-flow")) {
      double mean = 0.0;
      for (const Trajectory& m : result.members)
        mean += m["loss"].last()[0] / static_cast<double>(result.members.size());
      summary.end_loss = mean;
    }
    json["dynamics"].push_back(dynamics_json(summary));
    add_loss_ratios(problem_, result, json["dynamics"].back());
  }
  json["comparison"] = nlohmann::ordered_json::array();
  for (const DynamicsResult& theory : results) {
    if (!is_theory(theory)) continue;
    for (const DynamicsResult& simulation : results) {
      if (simulation.kind != "attention") continue;
      const double end_loss = theory.members.front()["loss"].last()[0];
      json["comparison"].push_back(comparison_json(theory, simulation, end_loss));
    }
  }
  return json;
}

std::vector<DrawnFigure> RegressionStudy::draw(const std::vector<DynamicsResult>& results,
                                               const nlohmann::ordered_json& summary,
                                               const FigureRequest& request) const {
  const FigureSource source{problem_,          results,
                            summary,           request.title,
                            logarithmic_time_, measurements_.evaluation ? &*measurements_.evaluation : nullptr};
  std::vector<DrawnFigure> drawn;
  for (const std::string& kind : request.figures) drawn.push_back(draw_figure(kind, source, request.folder));
  return drawn;
}

}  // namespace iclflow
