#include "iclflow/regression/stability_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "iclflow/analysis/escape.hpp"
#include "iclflow/analysis/estimate.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// Puts the mean of values and, with two or more, its standard error; null where there is none.
void put_mean(const std::string& key, const std::vector<double>& values, Json& json) {
  json[key] = nullptr;
  json[key + "_standard_error"] = nullptr;
  if (values.empty()) return;
  const Estimate mean = mean_estimate(values);
  json[key] = mean.value;
  if (mean.standard_error) json[key + "_standard_error"] = *mean.standard_error;
}

struct SeedEscape {
  std::vector<double> rates;
  double first = std::numeric_limits<double>::infinity();
};

/// All output-value entries of one seed that went to negative values.
SeedEscape escape_of(const Trajectory& run, std::size_t entries, double low, double high) {
  SeedEscape found;
  const Observable& mu = run["mu"];
  std::vector<double> curve(run.samples());
  for (std::size_t entry = 0; entry < entries; ++entry) {
    for (std::size_t k = 0; k < curve.size(); ++k) curve[k] = mu.at(k)[entry];
    const auto escape = find_escape(run.times, curve, low, high);
    if (!escape) continue;
    found.rates.push_back(0.5 * escape->growth_rate);
    found.first = std::min(found.first, escape->time);
  }
  return found;
}

}  // namespace

std::optional<StabilityPlan> read_stability(const Section& root, const Problem& problem) {
  const auto section = root.find_section("stability");
  if (!section) return std::nullopt;
  if (problem.parametrisation == Parametrisation::merged) {
    root.fail("stability", "belongs to the split parametrisation only", "no [stability]");
  }
  if (problem.heads < problem.tasks()) {
    root.fail("stability",
              fmt::format("needs a head per task, and there are {} for {} tasks", problem.heads, problem.tasks()),
              "no [stability]");
  }
  StabilityPlan plan;
  const std::int64_t largest = std::min<std::int64_t>(WeightLayout::of(problem).size() / 2, 1000);
  plan.saddle.modes = static_cast<int>(section->integer("modes", 0, largest, 0));
  plan.saddle.contexts = static_cast<int>(section->integer("contexts", 1, 100'000'000, plan.saddle.contexts));
  plan.saddle.seed =
      static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  plan.low = section->number("low", Sign::positive, plan.low);
  plan.high = section->number("high", Sign::positive, plan.high);
  if (plan.high <= plan.low) {
    section->fail("high", fmt::format("impossible value ({})", plan.high), fmt::format("more than low ({})", plan.low));
  }
  section->finish();
  return plan;
}

void StabilityPlan::resolve(TomlText& text) const {
  text.table("stability");
  text.put("modes", saddle.modes);
  text.put("contexts", saddle.contexts);
  text.put("seed", saddle.seed);
  text.put("low", low);
  text.put("high", high);
}

Json linear_stability_json(const Problem& problem, const StabilityPlan& plan, const Closure& closure,
                           const SpectralState& state, int threads) {
  const Coordinates full = Coordinates::full(problem);
  const bool blocks = constant_on_blocks(problem, state.omega);
  const Coordinates coordinates = blocks ? Coordinates::blocks(problem) : full;
  const SpectralState reduced{state.mu, blocks ? block_means(problem, state.omega) : state.omega};
  Closure threaded = closure;
  threaded.sampled.threads = threads;
  const auto loss = make_population_loss(threaded, problem, coordinates);
  Json json;
  std::vector<double> rates;
  const auto predicted = predicted_growth(*loss, problem, coordinates, reduced);
  json["predicted"] = Json::array();
  for (const PredictedGrowth& entry : predicted) {
    rates.push_back(entry.growth_rate);
    json["predicted"].push_back({{"head", entry.head},
                                 {"task", entry.task},
                                 {"growth_rate", entry.growth_rate},
                                 {"multiplicity", entry.multiplicity}});
  }
  put_mean("predicted_growth_rate", rates, json);
  json.erase("predicted_growth_rate_standard_error");  // entries are no sample
  // Time of escape per e-fold of the batch or of 1/C (from C in both terms of eq:escape-time).
  json["predicted_e_fold"] = rates.empty() ? Json(nullptr) : Json(1.0 / json["predicted_growth_rate"].get<double>());
  if (plan.saddle.modes == 0) return json;
  rates.clear();
  ThreadTeam team(threads);
  std::vector<double> slopes;
  json["modes"] = Json::array();
  json["largest_other"] = nullptr;
  for (const UnstableMode& mode :
       unstable_modes(problem, balanced_start(problem, state.mu, state.omega), plan.saddle, team)) {
    json["modes"].push_back({{"growth_rate", mode.growth_rate},
                             {"head", mode.head},
                             {"task", mode.task},
                             {"slope", mode.slope},
                             {"share", mode.share},
                             {"antisymmetry", mode.antisymmetry}});
    const auto is_entry = [&](const PredictedGrowth& p) { return p.head == mode.head && p.task == mode.task; };
    if (mode.share < 0.5) {
      if (json["largest_other"].is_null()) json["largest_other"] = mode.growth_rate;
    } else if (std::any_of(predicted.begin(), predicted.end(), is_entry)) {
      rates.push_back(mode.growth_rate);
      slopes.push_back(mode.slope);
    }
  }
  put_mean("growth_rate", rates, json);
  put_mean("sampled_slope", slopes, json);
  json.erase("growth_rate_standard_error");
  json.erase("sampled_slope_standard_error");
  return json;
}

Json escape_json(const Problem& problem, const StabilityPlan& plan, const DynamicsResult& simulation) {
  const auto limit = dedicated_limit(problem).value();
  const double scale = *std::max_element(limit.mu.begin(), limit.mu.end());
  const auto entries = static_cast<std::size_t>(problem.heads) * static_cast<std::size_t>(problem.tasks());
  std::vector<double> rates;
  std::vector<double> times;
  std::vector<double> e_folds;
  for (const Trajectory& run : simulation.members) {
    const SeedEscape found = escape_of(run, entries, plan.low * scale, plan.high * scale);
    if (found.rates.empty()) continue;
    const double mean = mean_estimate(found.rates).value;
    rates.push_back(mean);
    times.push_back(found.first);
    e_folds.push_back(mean * found.first);
  }
  Json json;
  json["escaped"] = times.size();
  put_mean("growth_rate", rates, json);
  put_mean("escape_time", times, json);
  put_mean("escape_e_folds", e_folds, json);
  return json;
}

}  // namespace iclflow
