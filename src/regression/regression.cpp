#include "iclflow/regression/regression.hpp"

#include <fmt/format.h>

#include "iclflow/attention/score_space_gradient.hpp"
#include "iclflow/experiment/stepper_section.hpp"
#include "iclflow/plots/figure.hpp"
#include "iclflow/regression/linear_study.hpp"
#include "iclflow/regression/problem_section.hpp"
#include "regression_study.hpp"

namespace iclflow {

namespace {

/// All weights and contexts of a simulation are held in memory: sizes that no machine holds are refused before anything
/// is allocated. Spectral flows need next to nothing.
void check_memory(const Section& section, const Problem& problem) {
  constexpr double largest_weights = 6.0e8;   // 5 GB: 32 partial gradients and a few copies of the weights
  constexpr double largest_contexts = 2.5e8;  // 2 GB a thread: tokens, scores and their slopes
  const double embedding = problem.embedding();
  const double weights = 40.0 * problem.heads * embedding * embedding;
  const double contexts = 2.0 * (embedding + 2.0 * problem.heads) * problem.context_length;
  if (weights > largest_weights) {
    section.fail("kind", fmt::format("too large a simulation: heads (d_x + d_y)^2 = {:.3g}", weights / 40.0),
                 fmt::format("at most {:.3g}, by fewer heads or smaller task_dimensions", largest_weights / 40.0));
  }
  if (contexts > largest_contexts) {
    section.fail(
        "kind", fmt::format("too large a simulation: context_length (d_x + d_y + 2 heads) = {:.3g}", 0.5 * contexts),
        fmt::format("at most {:.3g}, by a shorter context or smaller task_dimensions", 0.5 * largest_contexts));
  }
}

/// Lengths of all queries of the sampled closure are held in memory, and one context a thread.
void check_contexts(const Section& section, const Problem& problem, const Start& start, const RegressionDynamics& one) {
  constexpr double largest = 1.25e8;  // 1 GB
  const bool blocks = constant_on_blocks(problem, start.spectral().omega);
  const double coordinates = blocks ? problem.tasks() : problem.dimension();
  if (coordinates * one.closure.sampled.contexts > largest) {
    section.fail("contexts", fmt::format("impossible value ({})", one.closure.sampled.contexts),
                 fmt::format("at most {:.0f} here", largest / coordinates));
  }
  if (coordinates * problem.context_length > largest) {
    section.fail(
        "closure",
        fmt::format("too large a context for \"sampled\": {:.3g} numbers", coordinates * problem.context_length),
        fmt::format("at most {:.3g}, by a shorter context", largest));
  }
}

/// A start at which the closure does not hold.
void check_domain(const Section& section, const Problem& problem, const Start& start, const RegressionDynamics& one) {
  if (one.kind != "spectral-flow") return;
  if (one.closure.name == "sampled") return check_contexts(section, problem, start, one);  // it holds everywhere
  const SpectralFlow flow = make_flow(problem, start.spectral(), one.closure);
  if (flow.quantity(SpectralFlow::closure_margin, flow.initial()) > 0.0) return;
  section.fail("closure",
               fmt::format("\"{}\" does not hold at the start: {}", one.closure.name, flow.beyond(flow.initial())),
               "a start inside its domain, or closure = \"sampled\"");
}

/// A start whose scores read responses, or whose values read covariates, now or after a step.
void check_score_space(const Section& section, const Start& start, const RegressionDynamics& one) {
  if (one.kind != "attention" || one.simulation.estimator != GradientEstimator::score_space) return;
  const auto obstacle = score_space_obstacle(start.layout(), start.perturbed_weights(one.seeds.front()));
  if (!obstacle) return;
  section.fail("estimator", fmt::format("\"score-space\" does not hold at the start: {}", *obstacle),
               "\"tokens\", or weights with K_Y^T Q_X = K_Y^T K_X = 0 and O V_X = V_Y^T V_X = 0 (perturbation = 0), or "
               "parametrisation = \"merged\"");
}

std::string describe_stepper(const StepperInfo& info) {
  return fmt::format("order {}, {}{}; {}", info.order, info.adaptive ? "adaptive" : "fixed step",
                     info.implicit ? ", implicit" : "", info.citation);
}

class Regression final : public System {
 public:
  [[nodiscard]] std::string_view name() const override { return "regression"; }
  [[nodiscard]] std::string_view description() const override {
    return "in-context linear regression, one layer of multi-head attention: softmax (several tasks) or linear";
  }

  [[nodiscard]] std::unique_ptr<Study> parse(const Section& root) const override {
    if (root.section("problem").choice("attention", {{"softmax", "linear"}}, "softmax") == "linear") {
      return make_linear_study(root);
    }
    Problem problem = read_problem(root.section("problem"));
    const auto initial = root.find_section("initial");
    Start start = initial ? Start(problem, *initial) : Start(problem);
    std::vector<RegressionDynamics> dynamics;
    for (const Section& section : root.sections("dynamics")) {
      dynamics.push_back(read_dynamics(section, final_time(root)));
      if (dynamics.back().kind != "spectral-flow") check_memory(section, problem);
      check_domain(section, problem, start, dynamics.back());
      check_score_space(section, start, dynamics.back());
    }
    std::vector<std::string> names;
    for (const RegressionDynamics& one : dynamics) names.push_back(one.name);
    Measurements measurements{read_evaluation(root, problem, names), read_optimum(root), read_stability(root, problem),
                              read_closures(root, problem)};
    return std::make_unique<RegressionStudy>(std::move(problem), std::move(start), std::move(dynamics),
                                             logarithmic_time(root), std::move(measurements));
  }

  [[nodiscard]] std::vector<CatalogueEntry> catalogue() const override {
    std::vector<CatalogueEntry> entries{
        {"dynamics", "spectral-flow", "the reduced flow of (mu, omega): population loss times mobility"},
        {"dynamics", "attention", "all weights; method sgd (fresh contexts) or gradient-flow (fixed contexts)"},
        {"dynamics", "fixed", "keeps the initial weights"},
        {"attentions", "softmax", "several tasks; theory by a closure"},
        {"attentions", "linear",
         "one task of given covariance: merged (sigmoid) or split (saddle to saddle), exact population flow"},
        {"closures", "large-context", "leading order for large d and L"},
        {"closures", "finite-dimension", "first order in 1/L at fixed d; ends where D_hh / L = 0.2"},
        {"closures", "sampled", "any L and d, by common random numbers (contexts, seed)"}};
    for (const StepperInfo& info : steppers()) {
      entries.push_back({"steppers", std::string(info.name), describe_stepper(info)});
    }
    if (!has_cvode()) {
      entries.push_back({"steppers", "cvode", "not in this build: SUNDIALS was not found when it was configured"});
    }
    for (const FigureKind& figure : figure_kinds()) {
      entries.push_back({"figures", std::string(figure.name), std::string(figure.description)});
    }
    entries.insert(
        entries.end(),
        {{"estimators", "tokens", "contexts sampled token by token, exact gradient of the sampled loss"},
         {"estimators", "score-space", "sgd: L x min(H, d) normals a context, no token formed, smaller variance"},
         {"presets", "aligned", "mu = omega = scale, own-task mu own_ratio times larger"},
         {"presets", "authors", "K = Q = L^-3/4 on the diagonal, V and O alike, own-task entries doubled"},
         {"presets", "random",
          "mu and omega independent scale * N(0, 1), keyed by seed; positive = true, equal_omega = true"},
         {"presets", "limit", "the dedicated limit, all other entries exactly zero"}});
    for (const EstimatorInfo& info : estimator_kinds()) {
      entries.push_back({"baselines", std::string(info.name), std::string(info.description)});
    }
    return entries;
  }
};

}  // namespace

std::unique_ptr<System> make_regression() { return std::make_unique<Regression>(); }

}  // namespace iclflow
