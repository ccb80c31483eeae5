#include "iclflow/experiment/dynamics_summary.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/analysis/phases.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Json phases_json(const DynamicsResult& result, const std::optional<double>& end_loss) {
  Phases phases;
  if (end_loss) {
    const Band loss = seed_band(result, "loss");
    phases = find_phases(loss.times, loss.mean, *end_loss);
  }
  return {{"warm_up_end", or_null(phases.warm_up_end)},
          {"emergence_time", or_null(phases.emergence_time)},
          {"emergence_end", or_null(phases.emergence_end)}};
}

}  // namespace

Json or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json events_summary(const DynamicsResult& result) {
  Json events = Json::array();
  for (std::size_t m = 0; m < result.members.size(); ++m) {
    for (const EventRecord& event : result.members[m].events) {
      Json json = {{"quantity", event.quantity}, {"level", event.level}, {"direction", event.direction}};
      json["time"] = or_null(event.time);
      if (m < result.seeds.size()) json["seed"] = result.seeds[m];
      events.push_back(std::move(json));
    }
  }
  return events;
}

void add_estimate(Json& json, std::string_view key, const std::optional<Estimate>& estimate) {
  const std::string name(key);
  json[name] = estimate ? or_null(estimate->value) : Json(nullptr);
  json[name + "_standard_error"] = estimate ? or_null(estimate->standard_error) : Json(nullptr);
}

std::optional<Estimate> final_estimate(const DynamicsResult& result, std::string_view observable, std::size_t entry) {
  std::vector<double> values;
  for (const Trajectory& member : result.members) {
    if (member.samples() > 0) values.push_back(member[observable].last()[entry]);
  }
  return values.empty() ? std::nullopt : std::optional(mean_estimate(values));
}

Json dynamics_summary(const DynamicsResult& result, const std::optional<double>& end_loss) {
  Json json;
  json["name"] = result.name;
  json["kind"] = result.kind;
  json[result.kind == "spectral-flow" ? "closure" : "estimator"] = result.variant;
  json["status"] = !result.failure.empty() ? "failed" : (result.interrupted ? "interrupted" : "completed");
  if (!result.failure.empty()) json["failure"] = result.failure;
  json["seeds"] = result.seeds;
  const bool begun = !result.members.empty() && result.members.front().samples() > 0;
  json["final_time"] = begun ? Json(result.members.front().times.back()) : Json(nullptr);
  add_estimate(json, "final_loss", final_estimate(result, "loss"));
  json["phases"] = begun ? phases_json(result, end_loss) : Json(nullptr);
  json["events"] = events_summary(result);
  json["evaluations"] = result.evaluations;
  json["wall_seconds"] = result.wall_seconds;
  return json;
}

bool is_whole(const DynamicsResult& result) { return !result.interrupted && result.failure.empty(); }

Curve course(const DynamicsResult& result, std::string_view observable, std::size_t entry) {
  const Band band = seed_band(result, observable);
  Curve curve{result.name, band.times, {}, {}};
  for (std::size_t k = 0; k < band.times.size(); ++k) {
    curve.values.push_back(band.mean[k * band.width + entry]);
    if (result.members.size() > 1) curve.standard_error.push_back(band.standard_error[k * band.width + entry]);
  }
  return curve;
}

}  // namespace iclflow
