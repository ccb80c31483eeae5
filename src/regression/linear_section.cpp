#include "iclflow/regression/linear_section.hpp"

#include <fmt/format.h>

#include "iclflow/experiment/stepper_section.hpp"

namespace iclflow {

namespace {

constexpr std::size_t largest_dimension = 64;
constexpr double largest_context = 1e8;

void read_problem(const Section& section, LinearPlan& plan) {
  static_cast<void>(section.choice("attention", {{"softmax", "linear"}}));
  plan.layout.heads = static_cast<int>(section.integer("heads", 1, 4096));
  const std::vector<double> covariance = section.numbers("covariance", Sign::positive);
  if (covariance.size() > largest_dimension) {
    section.fail("covariance", fmt::format("too many eigenvalues ({})", covariance.size()),
                 fmt::format("at most {}", largest_dimension));
  }
  for (const double eigenvalue : covariance) {
    if (eigenvalue < 1e-30 || eigenvalue > 1e30) {
      section.fail("covariance", fmt::format("impossible value ({})", eigenvalue), "numbers from 1e-30 to 1e30");
    }
  }
  plan.contexts.covariance =
      Eigen::Map<const Eigen::VectorXd>(covariance.data(), static_cast<Eigen::Index>(covariance.size()));
  plan.layout.dimension = plan.contexts.dimension();
  plan.contexts.length = static_cast<int>(section.integer("context_length", 1, 16'777'216));
  if (static_cast<double>(plan.contexts.length) * static_cast<double>(covariance.size()) > largest_context) {
    section.fail("context_length", fmt::format("too large a context ({})", plan.contexts.length),
                 fmt::format("at most {:g} with {} covariates",
                             largest_context / static_cast<double>(covariance.size()), covariance.size()));
  }
  plan.layout.split = section.choice("parametrisation", {{"split", "merged"}}, "split") == "split";
  section.finish();
}

void read_initial(const Section& section, LinearPlan& plan) {
  plan.preset = section.choice("preset", {{"aligned", "random"}}, plan.preset);
  plan.scale = section.number("scale", Sign::positive, plan.scale);
  if (plan.preset == "random") plan.seed = static_cast<std::uint64_t>(section.integer("seed", 0, largest_seed, 1));
  plan.perturbation = section.number("perturbation", Sign::non_negative, 0.0);
  section.finish();
}

LinearDynamics read_one(const Section& section, double last) {
  constexpr int default_batch = 1000;
  LinearDynamics dynamics{read_reduction_dynamics(section, last, false, default_batch)};
  section.finish();
  return dynamics;
}

}  // namespace

DynamicsPart LinearDynamics::part() const {
  return {name, kind, is_flow() ? "exact population" : "sampled contexts", seeds, true};
}

Eigen::VectorXd LinearPlan::start() const {
  if (preset == "aligned") return aligned_linear_start(contexts, layout.reduced(), scale);
  Eigen::VectorXd weights(layout.reduced().size());
  NormalStream normal({seed, Stream::initial, 0, 0});
  for (double& entry : weights) entry = scale * normal();
  return weights;
}

Eigen::VectorXd LinearPlan::full_start(std::uint64_t member) const {
  Eigen::VectorXd weights = embed_linear(layout, start());
  if (perturbation == 0.0) return weights;
  NormalStream normal({member, Stream::initial, 0, 1});
  for (double& entry : weights) entry += perturbation * normal();
  return weights;
}

LinearPlan read_linear_plan(const Section& root) {
  LinearPlan plan;
  read_problem(root.section("problem"), plan);
  if (const auto initial = root.find_section("initial")) read_initial(*initial, plan);
  for (const Section& section : root.sections("dynamics")) {
    plan.dynamics.push_back(read_one(section, final_time(root)));
  }
  plan.logarithmic_time = logarithmic_time(root);
  return plan;
}

void resolve(const LinearPlan& plan, TomlText& text) {
  text.table("problem");
  text.put("attention", "linear");
  text.put("heads", plan.layout.heads);
  text.put("covariance", std::vector<double>(plan.contexts.covariance.begin(), plan.contexts.covariance.end()));
  text.put("context_length", plan.contexts.length);
  text.put("parametrisation", plan.layout.split ? "split" : "merged");
  text.table("initial");
  text.put("preset", plan.preset);
  text.put("scale", plan.scale);
  if (plan.preset == "random") text.put("seed", plan.seed);
  text.put("perturbation", plan.perturbation);
  for (const LinearDynamics& one : plan.dynamics) one.resolve(text);
}

}  // namespace iclflow
