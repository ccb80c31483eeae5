#include "ends_summary.hpp"

#include <set>
#include <string>

#include "iclflow/analysis/ends.hpp"
#include "iclflow/analysis/estimate.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Matrix last_matrix(const Observable& observable) {
  const auto last = observable.last();
  return Eigen::Map<const Matrix>(last.data(), static_cast<Eigen::Index>(observable.shape.at(0)),
                                  static_cast<Eigen::Index>(observable.shape.at(1)));
}

bool is_largest(const Matrix& table, std::size_t task, int head) {
  return table(head, static_cast<Eigen::Index>(task)) == table.col(static_cast<Eigen::Index>(task)).maxCoeff();
}

/// emerged, largest_value, order, heads of one member.
std::vector<double> emergence_counts(const DynamicsSummary& dynamics, const Trajectory& member) {
  std::vector<double> counts(4, 0.0);
  std::set<int> winners;
  const Matrix size = dynamics.initial_mu->cwiseAbs();
  const auto heads = emerging_heads(member);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (!heads[i]) continue;
    winners.insert(*heads[i]);
    counts[0] += 1.0;
    counts[1] += is_largest(size, i, *heads[i]) ? 1.0 : 0.0;
    counts[2] += dynamics.order && is_largest(*dynamics.order, i, *heads[i]) ? 1.0 : 0.0;
  }
  counts[3] = static_cast<double>(winners.size());
  return counts;
}

/// Tasks by End, then those served by heads of one sign and of both signs.
std::vector<double> end_counts(const Trajectory& member) {
  std::vector<double> counts(end_count + 2, 0.0);
  const Matrix mu = last_matrix(member["mu"]);
  const Matrix omega = last_matrix(member["omega_block"]);
  if (!mu.allFinite() || !omega.allFinite()) return counts;
  for (const End end : classify_ends(mu, omega)) {
    counts[static_cast<std::size_t>(end)] += 1.0;
    counts[end_count] += end == End::dedicated || end == End::superposed || end == End::shared ? 1.0 : 0.0;
    counts[end_count + 1] += end == End::zero_sum || end == End::opposed ? 1.0 : 0.0;
  }
  return counts;
}

/// Mean of column k of rows, and its standard error over rows when they are seeds.
void add_mean(const std::string& key, const std::vector<std::vector<double>>& rows, std::size_t k, Json& json) {
  std::vector<double> column;
  for (const auto& row : rows) column.push_back(row[k]);
  const Estimate mean = mean_estimate(column);
  json[key] = mean.value;
  if (mean.standard_error) json[key + "_standard_error"] = *mean.standard_error;
}

}  // namespace

void add_ends(const DynamicsSummary& dynamics, Json& json) {
  std::vector<std::vector<double>> emergence;
  std::vector<std::vector<double>> ends;
  for (const Trajectory& member : dynamics.result->members) {
    if (member.samples() == 0) continue;
    emergence.push_back(emergence_counts(dynamics, member));
    ends.push_back(end_counts(member));
  }
  if (emergence.empty()) return;
  static constexpr const char* keys[] = {"emerged", "largest_value", "order", "heads"};
  json["emergence"] = Json::object();
  for (std::size_t k = 0; k < std::size(keys); ++k) add_mean(keys[k], emergence, k, json["emergence"]);
  json["emergence"]["strength"] = Json::array();
  if (!dynamics.order) json["emergence"]["order"] = nullptr;
  for (Eigen::Index i = 0; dynamics.order && i < dynamics.order->cols(); ++i) {
    json["emergence"]["strength"].push_back(dynamics.order->col(i).maxCoeff());
  }
  json["ends"] = Json::object();
  for (std::size_t k = 0; k < end_count; ++k) {
    add_mean(std::string(name(static_cast<End>(k))), ends, k, json["ends"]);
  }
  add_mean("one_sign", ends, end_count, json["ends"]);
  add_mean("both_signs", ends, end_count + 1, json["ends"]);
}

}  // namespace iclflow
