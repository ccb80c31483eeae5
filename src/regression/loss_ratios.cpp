#include "iclflow/regression/loss_ratios.hpp"

#include <cmath>

#include "iclflow/analysis/late_mean.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

void put(const std::string& key, const std::optional<Estimate>& estimate, bool seeded, Json& json) {
  const auto or_null = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
  };
  json[key] = estimate ? or_null(estimate->value) : Json(nullptr);
  if (seeded) json[key + "_standard_error"] = estimate ? or_null(estimate->standard_error) : Json(nullptr);
}

Estimate times(const Estimate& estimate, double factor) {
  Estimate scaled{estimate.value * factor, estimate.standard_error};
  if (scaled.standard_error) *scaled.standard_error *= factor;
  return scaled;
}

bool equal_tasks(const Problem& problem) {
  for (int i = 1; i < problem.tasks(); ++i) {
    const auto task = static_cast<std::size_t>(i);
    if (problem.task_dimensions[task] != problem.task_dimensions[0] ||
        problem.signal_power(i) != problem.signal_power(0)) {
      return false;
    }
  }
  return true;
}

/// x = ell / (sum_i P_i / 2 - ell)   theory: eq:loss-ratio
std::optional<Estimate> loss_ratio(const Problem& problem, const Estimate& loss) {
  double ceiling = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) ceiling += 0.5 * problem.signal_power(i);
  const double below = ceiling - loss.value;
  if (!(below > 0.0) || !(loss.value > 0.0)) return std::nullopt;
  Estimate ratio{loss.value / below, std::nullopt};
  // d x/d ell = ceiling / (ceiling - ell)^2
  if (loss.standard_error) ratio.standard_error = *loss.standard_error * ceiling / (below * below);
  return ratio;
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
  const std::optional<Estimate> ratio = loss_ratio(problem, mean_estimate(last));
  put("final_x", ratio, seeded, dynamics);
  std::optional<Estimate> coefficient;
  if (ratio && equal_tasks(problem)) {
    const double unit = problem.noise_factor(0) * problem.task_dimensions[0] / problem.context_length;
    coefficient = times(*ratio, 1.0 / unit);
  }
  put("final_coefficient", coefficient, seeded, dynamics);
}

}  // namespace iclflow
