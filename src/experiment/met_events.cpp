#include "met_events.hpp"

#include <algorithm>
#include <optional>

#include "iclflow/analysis/late_mean.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// What became of each [[event]] in one dynamics: the members that met it, and when first.
Json met_events(const std::vector<Event>& events, const DynamicsResult& result) {
  Json all = Json::array();
  for (const Event& event : events) {
    const char* direction = event.direction == Direction::rising ? "rising" : "falling";
    std::vector<double> times;
    for (const Trajectory& member : result.members) {
      const auto first = std::find_if(member.events.begin(), member.events.end(), [&](const EventRecord& record) {
        return record.quantity == event.quantity && record.level == event.level && record.direction == direction;
      });
      if (first != member.events.end()) times.push_back(first->time);
    }
    all.push_back({{"quantity", event.quantity}, {"level", event.level}, {"direction", direction}});
    Json& met = all.back();
    met["time"] = nullptr;
    met["time_standard_error"] = nullptr;
    if (!times.empty()) {
      const Estimate time = mean_estimate(times);
      met["time"] = time.value;
      if (times.size() > 1) met["time_standard_error"] = time.standard_error.value_or(0.0);
    }
    all.back()["count"] = times.size();
  }
  return all;
}

}  // namespace

void add_met_events(const Experiment& experiment, const std::vector<DynamicsResult>& results, Json& summary) {
  const auto dynamics = summary.find("dynamics");
  if (experiment.events.empty() || dynamics == summary.end()) return;
  for (Json& one : *dynamics) {
    for (const DynamicsResult& result : results) {
      if (one.value("name", "") == result.name) one["event"] = met_events(experiment.events, result);
    }
  }
}

}  // namespace iclflow
