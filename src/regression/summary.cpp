#include "iclflow/regression/summary.hpp"

#include <algorithm>
#include <cmath>

#include "ends_summary.hpp"
#include "iclflow/analysis/allocation.hpp"
#include "iclflow/analysis/comparison.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// Mean over members and its standard error, entry by entry.
struct Mean {
  std::vector<double> value;
  std::vector<double> standard_error;  ///< empty with fewer than two members
};

Mean mean_of(const std::vector<std::vector<double>>& rows) {
  Mean mean;
  if (rows.empty()) return mean;
  std::vector<double> column(rows.size());
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    std::transform(rows.begin(), rows.end(), column.begin(), [i](const auto& row) { return row[i]; });
    const Estimate entry = mean_estimate(column);
    mean.value.push_back(entry.value);
    if (entry.standard_error) mean.standard_error.push_back(*entry.standard_error);
  }
  return mean;
}

/// Mean over members of an observable's last sample.
Mean final_mean(const DynamicsResult& result, std::string_view observable) {
  std::vector<std::vector<double>> rows;
  for (const Trajectory& member : result.members) {
    if (member.samples() == 0 || !member.has(observable)) continue;
    const auto last = member[observable].last();
    rows.emplace_back(last.begin(), last.end());
  }
  return mean_of(rows);
}

Json scalar(const std::vector<double>& values) { return values.empty() ? Json(nullptr) : or_null(values.front()); }

/// H x I entries, row-major, as an array of rows; null when there are none.
Json rows_json(const std::vector<double>& values, std::size_t heads) {
  if (values.empty() || heads == 0) return nullptr;
  const std::size_t tasks = values.size() / heads;
  Json rows = Json::array();
  for (std::size_t h = 0; h < heads; ++h) {
    Json row = Json::array();
    for (std::size_t i = 0; i < tasks; ++i) row.push_back(or_null(values[h * tasks + i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

Matrix as_matrix(const std::vector<double>& values, std::size_t heads) {
  const auto rows = static_cast<Eigen::Index>(heads);
  return Eigen::Map<const Matrix>(values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
}

std::optional<double> width(const Phases& phases) {
  if (!phases.warm_up_end || !phases.emergence_end) return std::nullopt;
  return *phases.emergence_end - *phases.warm_up_end;
}

Json phases_json(const Phases& phases) {
  return {{"warm_up_end", or_null(phases.warm_up_end)},
          {"emergence_time", or_null(phases.emergence_time)},
          {"emergence_end", or_null(phases.emergence_end)},
          {"emergence_width", or_null(width(phases))}};
}

Phases mean_phases(const DynamicsSummary& dynamics) {
  if (dynamics.exact_phases) return *dynamics.exact_phases;
  if (!dynamics.end_loss) return {};
  const Band loss = seed_band(*dynamics.result, "loss");
  return find_phases(loss.times, loss.mean, *dynamics.end_loss);
}

/// Standard errors over seeds of the seeds' own emergence times and widths. The width is the mean of their own, too:
/// that of the mean loss is larger by the spread of their emergence times.
void add_phase_errors(const DynamicsSummary& dynamics, Json& json) {
  std::vector<std::vector<double>> times;
  std::vector<std::vector<double>> widths;
  for (const Trajectory& member : dynamics.result->members) {
    if (member.samples() < 2 || !dynamics.end_loss) continue;
    const Phases own = find_phases(member.times, member["loss"].values, *dynamics.end_loss);
    if (own.emergence_time) times.push_back({*own.emergence_time});
    if (width(own)) widths.push_back({*width(own)});
  }
  json["emergence_time_standard_error"] = scalar(mean_of(times).standard_error);
  json["emergence_width"] = scalar(mean_of(widths).value);
  json["emergence_width_standard_error"] = scalar(mean_of(widths).standard_error);
}

void add_allocation(const Mean& mu, const Mean& omega, std::size_t heads, Json& json) {
  json["allocation"] = Json::array();
  const bool finite = std::all_of(mu.value.begin(), mu.value.end(), [](double x) { return std::isfinite(x); }) &&
                      std::all_of(omega.value.begin(), omega.value.end(), [](double x) { return std::isfinite(x); });
  if (mu.value.empty() || !finite) return;
  const Allocation allocation = allocate(as_matrix(mu.value, heads), as_matrix(omega.value, heads));
  for (const auto& head : allocation.head) json["allocation"].push_back(head ? Json(*head) : Json(nullptr));
  const Matrix& share = allocation.share;
  json["allocation_share"] = rows_json({share.data(), share.data() + share.size()}, heads);
  json["allocation_ties"] = allocation.ties;
  json["double_winners"] = Json::array();
  for (const auto& [head, tasks] : allocation.double_winners) {
    json["double_winners"].push_back({{"head", head}, {"tasks", tasks}});
  }
}

void add_leakage(const DynamicsResult& result, Json& json) {
  Json leakage;
  Json error;
  for (const char* part : {"key_query", "cross", "output_value", "value_x"}) {
    const Mean mean = final_mean(result, std::string("leakage_") + part);
    leakage[part] = scalar(mean.value);
    error[part] = scalar(mean.standard_error);
  }
  json["leakage"] = std::move(leakage);
  json["leakage_standard_error"] = std::move(error);
}

double final_time(const DynamicsResult& result) {
  double time = result.members.front().times.back();
  for (const Trajectory& member : result.members) time = std::min(time, member.times.back());
  return time;
}

}  // namespace

Json dynamics_json(const DynamicsSummary& dynamics) {
  const DynamicsResult& result = *dynamics.result;
  const bool attention = result.kind != "spectral-flow";
  Json json;
  json["name"] = result.name;
  json["kind"] = result.kind;
  json[attention ? "estimator" : "closure"] = result.variant;
  json["status"] = !result.failure.empty() ? "failed" : (result.interrupted ? "interrupted" : "completed");
  if (!result.failure.empty()) json["failure"] = result.failure;
  json["seeds"] = result.seeds;
  json["final_time"] = or_null(final_time(result));
  const Mean loss = final_mean(result, "loss");
  json["final_loss"] = scalar(loss.value);
  if (result.kind == "attention") json["final_loss_standard_error"] = scalar(loss.standard_error);
  // Without seeds the error is that of the sampled population loss.
  const Mean sampling = final_mean(result, "loss_standard_error");
  if (result.kind != "attention" && !sampling.value.empty()) json["final_loss_standard_error"] = scalar(sampling.value);
  json["phases"] = phases_json(mean_phases(dynamics));
  if (attention) add_phase_errors(dynamics, json["phases"]);
  const std::size_t heads = result.members.front()["mu"].shape.front();
  const Mean mu = final_mean(result, "mu");
  const Mean omega = final_mean(result, "omega_block");
  add_allocation(mu, omega, heads, json);
  json["final_mu"] = rows_json(mu.value, heads);
  json["final_omega"] = rows_json(omega.value, heads);
  if (attention) {
    json["final_mu_standard_error"] = rows_json(mu.standard_error, heads);
    json["final_omega_standard_error"] = rows_json(omega.standard_error, heads);
    add_leakage(result, json);
  }
  add_ends(dynamics, json);
  json["events"] = events_summary(result);
  json["evaluations"] = result.evaluations;
  json["wall_seconds"] = result.wall_seconds;
  return json;
}

Json comparison_json(const DynamicsResult& theory, const DynamicsResult& simulation, double end_loss) {
  const Comparison comparison = compare(theory, simulation, end_loss);
  Json json = {{"theory", theory.name}, {"simulation", simulation.name}};
  add_estimate(json, "loss_gap", comparison.loss_gap);
  add_estimate(json, "loss_gap_max", comparison.loss_gap_max);
  add_estimate(json, "emergence_time_gap", comparison.emergence_time_gap);
  add_estimate(json, "mu_gap", comparison.mu_gap);
  add_estimate(json, "omega_gap", comparison.omega_gap);
  add_estimate(json, "late_excess", comparison.late_excess);
  return json;
}

}  // namespace iclflow
