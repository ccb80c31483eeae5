#include "iclflow/regression/loss_ratios.hpp"

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/analysis/late_mean.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

void put(const std::string& key, const std::optional<Estimate>& estimate, bool seeded, Json& json) {
  json[key] = estimate ? or_null(estimate->value) : Json(nullptr);
  if (seeded) json[key + "_standard_error"] = estimate ? or_null(estimate->standard_error) : Json(nullptr);
}

/// A quantity f(ell) proportional to x = loss_ratio at fixed problem; d x/d ell = x (1 + x) / ell.
std::optional<Estimate> at_loss(const Problem& problem, std::optional<double> value, const Estimate& loss) {
  if (!value) return std::nullopt;
  Estimate found{*value, std::nullopt};
  if (loss.standard_error) {
    const double x = loss_ratio(problem, loss.value).value();
    found.standard_error = *loss.standard_error * *value * (1.0 + x) / loss.value;
  }
  return found;
}

}  // namespace

void add_loss_ratios(const Problem& problem, const DynamicsResult& result, Json& dynamics) {
  std::vector<double> last;
  for (const Trajectory& member : result.members) {
    if (member.samples() > 0) last.push_back(member["loss"].last()[0]);
  }
  if (last.empty()) return;
  const bool seeded = !result.seeds.empty();
  put("late_loss", late_mean(result, "loss"), seeded, dynamics);
  const Estimate loss = mean_estimate(last);
  put("final_x", at_loss(problem, loss_ratio(problem, loss.value), loss), seeded, dynamics);
  put("final_coefficient", at_loss(problem, loss_coefficient(problem, loss.value), loss), seeded, dynamics);
}

}  // namespace iclflow
