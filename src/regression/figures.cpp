#include "iclflow/regression/figures.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <stdexcept>

#include "iclflow/analysis/allocation.hpp"
#include "iclflow/analysis/comparison.hpp"
#include "iclflow/experiment/drawn_figure.hpp"
#include "iclflow/regression/evaluation.hpp"
#include "iclflow/regression/regimes.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

bool is_flow(const DynamicsResult& result) { return result.kind == "spectral-flow"; }

/// A curve needs two samples; fixed weights and dynamics that were stopped at once have one.
bool moves(const DynamicsResult& result) { return seed_band(result, "loss").times.size() > 1; }

std::vector<double> error_of(const DynamicsResult& result, const Band& band) {
  return result.members.size() > 1 ? band.standard_error : std::vector<double>{};
}

Curve curve(const DynamicsResult& result, std::string_view observable) {
  const Band band = seed_band(result, observable);
  return {result.name, band.times, band.mean, error_of(result, band)};
}

std::optional<double> number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

Phases phases_of(const Json& summary, const std::string& name) {
  for (const Json& dynamics : summary.at("dynamics")) {
    if (dynamics.at("name") != name) continue;
    const Json& phases = dynamics.at("phases");
    return {number(phases, "warm_up_end"), number(phases, "emergence_time"), number(phases, "emergence_end")};
  }
  return {};
}

const DynamicsResult* first_theory(const FigureSource& source) {
  const auto found = std::find_if(source.results.begin(), source.results.end(), is_flow);
  return found == source.results.end() ? nullptr : &*found;
}

/// H x I row of a band at the sample nearest to `time`; empty beyond its end.
std::vector<double> row_near(const Band& band, double time) {
  const double end = band.times.back();
  if (time > end + 1e-9 * std::abs(end)) return {};
  const auto after = std::lower_bound(band.times.begin(), band.times.end(), time);
  auto k = static_cast<std::size_t>(std::min(after, band.times.end() - 1) - band.times.begin());
  if (k > 0 && time - band.times[k - 1] < band.times[k] - time) --k;
  const auto begin = band.mean.begin() + static_cast<std::ptrdiff_t>(k * band.width);
  return {begin, begin + static_cast<std::ptrdiff_t>(band.width)};
}

ShareMap share_at(const DynamicsResult& result, const Problem& problem, double time) {
  const std::vector<double> mu = row_near(seed_band(result, "mu"), time);
  const std::vector<double> omega = row_near(seed_band(result, "omega_block"), time);
  if (mu.empty() || omega.empty()) return {time, {}};
  const Eigen::Map<const Matrix> mu_map(mu.data(), problem.heads, problem.tasks());
  const Eigen::Map<const Matrix> omega_map(omega.data(), problem.heads, problem.tasks());
  const Matrix share = allocate(mu_map, omega_map).share;
  return {time, {share.data(), share.data() + share.size()}};
}

/// Norm over heads and tasks of an H x I observable's seeds' mean, as a scale for leakage.
Curve norm_curve(const DynamicsResult& result, std::string_view observable, const std::string& label) {
  const Band band = seed_band(result, observable);
  Curve norm{label, band.times, {}, {}};
  for (std::size_t k = 0; k < band.times.size(); ++k) {
    double squares = 0.0;
    for (std::size_t j = k * band.width; j < (k + 1) * band.width; ++j) squares += band.mean[j] * band.mean[j];
    norm.values.push_back(std::sqrt(squares));
  }
  return norm;
}

}  // namespace

LossFigure loss_figure(const FigureSource& source) {
  LossFigure figure;
  figure.title = source.title;
  figure.logarithmic_time = source.logarithmic_time;
  const DynamicsResult* theory = first_theory(source);
  for (const DynamicsResult& result : source.results) {
    if (!moves(result)) continue;
    if (is_flow(result)) {
      figure.theory.push_back(curve(result, "loss"));
      continue;
    }
    figure.simulation.push_back(curve(result, "loss"));
    figure.simulation_phases.push_back(phases_of(source.summary, result.name));
    if (theory == nullptr || !moves(*theory)) continue;
    const Band band = loss_difference(*theory, result);
    figure.difference.push_back({result.name, band.times, band.mean, error_of(result, band)});
  }
  if (theory != nullptr) figure.theory_phases = phases_of(source.summary, theory->name);
  const Json& dedicated = source.summary.at("prediction").at("dedicated");
  if (dedicated.is_object()) figure.levels.push_back({"dedicated limit", dedicated.at("loss").get<double>()});
  for (const DynamicsResult& result : source.results) {
    if (result.kind == "fixed") figure.levels.push_back({result.name, result.members.front()["loss"].last()[0]});
  }
  return figure;
}

SpectrumFigure spectrum_figure(const FigureSource& source) {
  SpectrumFigure figure;
  figure.title = source.title;
  figure.heads = source.problem.heads;
  figure.tasks = source.problem.tasks();
  figure.logarithmic_time = source.logarithmic_time;
  for (const DynamicsResult& result : source.results) {
    if (!moves(result)) continue;
    const Band mu = seed_band(result, "mu");
    const Band omega = seed_band(result, "omega_block");
    figure.series.push_back(
        {result.name, !is_flow(result), mu.times, mu.mean, omega.mean, error_of(result, mu), error_of(result, omega)});
  }
  const Json& dedicated = source.summary.at("prediction").at("dedicated");
  if (dedicated.is_object()) {
    figure.predicted_mu = dedicated.at("mu").get<std::vector<double>>();
    figure.predicted_omega = dedicated.at("omega").get<std::vector<double>>();
  }
  return figure;
}

AllocationFigure allocation_figure(const FigureSource& source) {
  AllocationFigure figure;
  figure.title = source.title;
  figure.heads = source.problem.heads;
  figure.tasks = source.problem.tasks();
  const DynamicsResult& reference = first_theory(source) != nullptr ? *first_theory(source) : source.results.front();
  const Phases phases = phases_of(source.summary, reference.name);
  std::vector<double> times{0.0};
  figure.moments = {"start"};
  const auto add = [&](const char* moment, const std::optional<double>& time) {
    if (!time || *time <= times.back()) return;
    times.push_back(*time);
    figure.moments.emplace_back(moment);
  };
  add("warm-up end", phases.warm_up_end);
  add("emergence", phases.emergence_time);
  add("emergence end", phases.emergence_end);
  add("end", seed_band(reference, "loss").times.back());
  for (const DynamicsResult& result : source.results) {
    ShareRow row{result.name, {}};
    for (const double time : times) row.maps.push_back(share_at(result, source.problem, time));
    figure.rows.push_back(std::move(row));
  }
  return figure;
}

LeakageFigure leakage_figure(const FigureSource& source) {
  LeakageFigure figure;
  figure.title = source.title;
  figure.logarithmic_time = source.logarithmic_time;
  for (const DynamicsResult& result : source.results) {
    if (is_flow(result) || !moves(result)) continue;
    figure.series.push_back({result.name,
                             {curve(result, "leakage_key_query"), curve(result, "leakage_cross"),
                              curve(result, "leakage_output_value"), curve(result, "leakage_value_x")}});
    if (!figure.diagonal.empty()) continue;
    figure.diagonal.push_back(norm_curve(result, "omega", "|omega|"));
    figure.diagonal.push_back(norm_curve(result, "mu", "|mu|"));
  }
  return figure;
}

DrawnFigure draw_figure(const std::string& kind, const FigureSource& source, const std::filesystem::path& folder) {
  if (kind == "regimes") return drawn_figure(kind, regimes_figure(source.problem, source.title), folder);
  if (kind == "evaluation") {
    const auto rows = source.summary.find("evaluation");
    if (source.evaluation == nullptr || rows == source.summary.end() || rows->empty())
      return {kind, "", "there is no evaluation yet"};
    std::vector<std::string> dynamics;
    for (const DynamicsResult& result : source.results) dynamics.push_back(result.name);
    return drawn_figure(kind, evaluation_figure(*rows, *source.evaluation, source.title, source.problem, dynamics),
                        folder);
  }
  const bool moving = std::any_of(source.results.begin(), source.results.end(), moves);
  if (source.results.empty() || (!moving && kind != "allocation")) {
    return {kind, "", "there are fewer than two samples to draw"};
  }
  if (kind == "loss") return drawn_figure(kind, loss_figure(source), folder);
  if (kind == "spectrum") return drawn_figure(kind, spectrum_figure(source), folder);
  if (kind == "allocation") return drawn_figure(kind, allocation_figure(source), folder);
  if (kind == "leakage") return drawn_figure(kind, leakage_figure(source), folder);
  throw std::invalid_argument("no figure is called '" + kind + "'");
}

}  // namespace iclflow
