#include "iclflow/regression/optimum_section.hpp"

#include <fmt/format.h>

#include <limits>

#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Json rows(const Matrix& matrix) {
  Json all = Json::array();
  for (Eigen::Index h = 0; h < matrix.rows(); ++h) {
    Json row = Json::array();
    for (Eigen::Index i = 0; i < matrix.cols(); ++i) row.push_back(matrix(h, i));
    all.push_back(std::move(row));
  }
  return all;
}

std::string row_text(const Json& row) {
  std::string text;
  for (const Json& value : row) text += fmt::format("{:12.5g}", value.get<double>());
  return text;
}

}  // namespace

std::optional<OptimumPlan> read_optimum(const Section& root) {
  const auto section = root.find_section("optimum");
  if (!section) return std::nullopt;
  OptimumPlan plan;
  // finite-dimension is unbounded below inside its domain: it has no optimum.
  plan.closure.name = section->choice("closure", {{"large-context", "sampled"}}, "large-context");
  plan.options.starts = static_cast<int>(section->integer("starts", 1, 100'000, plan.options.starts));
  plan.options.seed =
      static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  if (plan.closure.name == "sampled") {
    plan.closure.sampled.contexts = static_cast<int>(
        section->integer("contexts", SampledLoss::smallest, 100'000'000, plan.closure.sampled.contexts));
  }
  section->finish();
  return plan;
}

void OptimumPlan::resolve(TomlText& text) const {
  text.table("optimum");
  text.put("closure", closure.name);
  text.put("starts", options.starts);
  text.put("seed", options.seed);
  if (closure.name == "sampled") text.put("contexts", closure.sampled.contexts);
}

Json optimum_json(const Problem& problem, const OptimumPlan& plan, int threads) {
  const Coordinates blocks = Coordinates::blocks(problem);
  Closure closure = plan.closure;
  closure.sampled.threads = threads;
  const auto loss = make_population_loss(closure, problem, blocks);
  const Optimum best = find_optimum(*loss, problem, blocks, plan.options);
  Json json = {{"closure", closure.name}, {"starts", plan.options.starts}, {"loss", best.loss}};
  json["coefficient"] = best.coefficient ? Json(*best.coefficient) : Json(nullptr);
  const auto predicted = best_coefficient(problem);
  json["predicted_coefficient"] = predicted ? Json(*predicted) : Json(nullptr);
  json["mu"] = rows(best.state.mu);
  json["omega"] = rows(best.state.omega);
  json["minima"] = best.minima;
  return json;
}

std::string optimum_text(const Json& optimum) {
  const auto number = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.8g}", value.get<double>()) : std::string("none (tasks are unequal)");
  };
  std::string text =
      fmt::format("closure {}, {} starts\n", optimum.at("closure").get<std::string>(), optimum.at("starts").get<int>());
  text += fmt::format("  loss                 {}\n", number(optimum.at("loss")));
  text += fmt::format("  kappa                {}\n", number(optimum.at("coefficient")));
  text += fmt::format("  kappa, closed form   {} (large-context)\n", number(optimum.at("predicted_coefficient")));
  const Json& minima = optimum.at("minima");
  text +=
      fmt::format("  starts ended between {:.8g} and {:.8g}, the middle one at {:.8g}\n", minima.front().get<double>(),
                  minima.back().get<double>(), minima.at(minima.size() / 2).get<double>());
  for (const char* name : {"mu", "omega"}) {
    text += fmt::format("{} (a row per head, a column per task)\n", name);
    for (const Json& row : optimum.at(name)) text += fmt::format("  {}\n", row_text(row));
  }
  return text;
}

}  // namespace iclflow
