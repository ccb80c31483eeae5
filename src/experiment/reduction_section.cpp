#include "iclflow/experiment/reduction_section.hpp"

#include <algorithm>
#include <iterator>

#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/integrate/descent.hpp"

namespace iclflow {

ReductionDynamics read_reduction_dynamics(const Section& section, double final_time, bool implicit, int default_batch) {
  constexpr int default_evaluation_contexts = 2000;
  ReductionDynamics dynamics;
  dynamics.kind = section.choice("kind", {{"spectral-flow", "attention"}});
  dynamics.name = section.text("name", dynamics.kind);
  if (dynamics.is_flow()) {
    dynamics.stepper = read_stepper(section, final_time, implicit);
    return dynamics;
  }
  static_cast<void>(section.choice("method", {{"sgd"}}, "sgd"));
  dynamics.learning_rate = section.number("learning_rate", Sign::positive);
  dynamics.batch = static_cast<int>(section.integer("batch", 1, largest_context_count, default_batch));
  dynamics.seeds = read_seeds(section, false);
  dynamics.evaluation_contexts =
      static_cast<int>(section.integer("evaluation_contexts", 1, largest_context_count, default_evaluation_contexts));
  return dynamics;
}

void ReductionDynamics::check_times(const std::vector<double>& times) const {
  if (!is_flow()) static_cast<void>(sample_steps(times, learning_rate));
}

void ReductionDynamics::resolve(TomlText& text) const {
  text.element("dynamics");
  text.put("name", name);
  text.put("kind", kind);
  if (is_flow()) return resolve_stepper(stepper, text);
  text.put("method", "sgd");
  text.put("learning_rate", learning_rate);
  text.put("batch", batch);
  text.put("seeds", seeds);
  text.put("evaluation_contexts", evaluation_contexts);
}

std::vector<DynamicsResult> moving(const std::vector<DynamicsResult>& results) {
  std::vector<DynamicsResult> found;
  std::copy_if(results.begin(), results.end(), std::back_inserter(found),
               [](const DynamicsResult& result) { return course(result, "loss").times.size() > 1; });
  return found;
}

}  // namespace iclflow
