#include "iclflow/mesa/compression_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

double loss_of(const StackModelWeights& model, const StackBatch& batch, int threads) {
  return make_stack(model.shape, StackPrecision::single_precision, threads)->loss(model.parameters, batch);
}

void push(Json& arrays, const std::string& key, const std::vector<double>& seeds) {
  const Estimate estimate = mean_estimate(seeds);
  arrays[key].push_back(estimate.value);
  arrays[key + "_standard_error"].push_back(or_null(estimate.standard_error));
}

}  // namespace

std::optional<CompressionPlan> read_compression(const Section& root) {
  const auto section = root.find_section("compression");
  if (!section) return std::nullopt;
  CompressionPlan plan;
  plan.along = section->boolean("along", plan.along);
  section->finish();
  return plan;
}

void resolve(const CompressionPlan& plan, TomlText& text) {
  text.table("compression");
  text.put("along", plan.along);
}

Json compression_of_training(const CompressionPlan& plan, const StackShape& shape, const DynamicsResult& result,
                             const StackBatch& batch, int threads, const std::function<bool()>& interrupted) {
  const auto stopped = [&interrupted] { return interrupted && interrupted(); };
  std::vector<StackModelWeights> compressed;
  // Ratios by seed: the seeds' losses differ more than what compression does to each.
  constexpr std::array<const char*, 5> keys{"trained_loss", "loss", "interpolated_loss", "loss_ratio",
                                            "interpolated_loss_ratio"};
  std::array<std::vector<double>, keys.size()> losses;
  Json by_seed = Json::array();
  for (std::size_t m = 0; m < result.final_states.size(); ++m) {
    if (stopped()) return nullptr;
    const StackModelWeights trained{shape, result.final_states[m]};
    compressed.push_back(compress(shape, trained.parameters));
    Json of_seed = compression_summary(trained, batch, threads);
    for (const char* key : {"loss", "interpolated_loss"}) {
      of_seed[fmt::format("{}_ratio", key)] = of_seed.at(key).get<double>() / of_seed.at("trained_loss").get<double>();
    }
    for (std::size_t k = 0; k < keys.size(); ++k) losses[k].push_back(of_seed.at(keys[k]).get<double>());
    of_seed.erase("parameters_per_head");
    of_seed["seed"] = result.seeds.at(m);
    by_seed.push_back(std::move(of_seed));
  }
  Json json;
  for (std::size_t k = 0; k < keys.size(); ++k) add_estimate(json, keys[k], mean_estimate(losses[k]));
  json["parameters_per_head"] = compressed_parameters_per_head;
  json["by_seed"] = std::move(by_seed);
  if (!plan.along || !result.members.front().has("parameters")) return json;
  // A terminal event may end one seed before another.
  std::size_t common = result.members.front().samples();
  for (const Trajectory& member : result.members) common = std::min(common, member.samples());
  const std::vector<double>& steps = result.members.front().times;
  for (std::size_t k = 0; k < common; ++k) {
    if (stopped()) return nullptr;
    std::vector<double> means, seeds;
    for (std::size_t m = 0; m < result.members.size(); ++m) {
      const std::span<const double> now = result.members[m]["parameters"].at(k);
      const StackModelWeights recorded{
          shape, Eigen::Map<const Eigen::VectorXd>(now.data(), static_cast<Eigen::Index>(now.size()))};
      means.push_back(loss_of(compress(shape, recorded.parameters), batch, threads));
      seeds.push_back(loss_of(interpolate(recorded, compressed[m]), batch, threads));
    }
    json["along"]["step"].push_back(steps[k]);
    push(json["along"], "compressed_loss", means);
    push(json["along"], "interpolated_loss", seeds);
  }
  return json;
}

}  // namespace iclflow
