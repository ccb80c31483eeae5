#include <algorithm>
#include <cmath>

#include "iclflow/experiment/run.hpp"
#include "met_events.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// Worst value of a key over all comparisons; null when any of them lacks it.
Json worst(const Json& comparisons, const std::string& key) {
  Json value = nullptr;
  for (const Json& comparison : comparisons) {
    const auto found = comparison.find(key);
    if (found == comparison.end() || !found->is_number()) return nullptr;
    const double next = found->get<double>();
    if (value.is_null() || next > value.get<double>()) value = next;
  }
  return value;
}

Json check(const std::vector<Expectation>& expectations, const Json& summary) {
  Json checked = Json::array();
  const auto comparisons = summary.find("comparison");
  for (const Expectation& expectation : expectations) {
    const Json value = comparisons == summary.end() ? Json(nullptr) : worst(*comparisons, expectation.key);
    checked.push_back({{"key", expectation.key},
                       {"allowed", expectation.allowed},
                       {"value", value},
                       {"met", value.is_number() && value.get<double>() <= expectation.allowed}});
  }
  return checked;
}

std::string status(const Experiment& experiment, const std::vector<DynamicsResult>& results, bool evaluated) {
  const auto failed = [](const DynamicsResult& r) { return !r.failure.empty(); };
  const auto interrupted = [](const DynamicsResult& r) { return r.interrupted; };
  if (std::any_of(results.begin(), results.end(), failed)) return "failed";
  const bool all = results.size() == experiment.study->dynamics().size();
  return !all || !evaluated || std::any_of(results.begin(), results.end(), interrupted) ? "interrupted" : "completed";
}

std::vector<std::uint64_t> all_seeds(const Experiment& experiment) {
  std::vector<std::uint64_t> seeds;
  for (const DynamicsPart& part : experiment.study->dynamics()) {
    for (const std::uint64_t seed : part.seeds) {
      if (std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
    }
  }
  return seeds;
}

}  // namespace

Json make_summary(const Experiment& experiment, const std::vector<DynamicsResult>& results,
                  const Evaluated& evaluated) {
  Json summary;
  summary["version"] = version();
  summary["title"] = experiment.title;
  summary["system"] = experiment.system;
  summary["status"] = status(experiment, results, evaluated.whole);
  summary["seeds"] = all_seeds(experiment);
  summary["problem"] = experiment.study->problem();
  if (!experiment.study->predicts_by_sampling()) summary["prediction"] = experiment.study->predict();
  const Json own = experiment.study->summarise(results);
  for (const auto& [key, value] : own.items()) summary[key] = value;
  for (const auto& [key, value] : evaluated.keys.items()) summary[key] = value;
  add_met_events(experiment, results, summary);
  summary["expect"] = check(experiment.expectations, summary);
  if (experiment.claim) {
    summary["claim"] = {{"statement", experiment.claim->statement}, {"source", experiment.claim->source}};
  }
  if (!experiment.checks.empty()) {
    summary["checks"] = check_all(experiment.checks, quantities_of(summary), experiment.theory_only);
  }
  return summary;
}

}  // namespace iclflow
