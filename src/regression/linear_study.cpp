#include "iclflow/regression/linear_study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/analysis/monotone_cubic.hpp"
#include "iclflow/experiment/drawn_figure.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/integrate/descent.hpp"
#include "iclflow/plots/course_figure.hpp"
#include "iclflow/plots/leakage_figure.hpp"
#include "iclflow/plots/loss_figure.hpp"
#include "iclflow/regression/linear_section.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* leakage_parts[] = {"key_query", "cross", "output_value", "value_x"};

Json numbers(const Eigen::VectorXd& values) { return std::vector<double>(values.begin(), values.end()); }

/// First time at which one mode of one member reaches `level`, interpolated between samples (monotone cubic).
std::optional<double> rise_time(const Trajectory& member, std::size_t mode, double level) {
  const Observable& modes = member["modes"];
  std::vector<double> values;
  for (std::size_t k = 0; k < member.samples(); ++k) values.push_back(modes.at(k)[mode]);
  const auto above = std::find_if(values.begin(), values.end(), [&](double value) { return value >= level; });
  if (above == values.begin() || above == values.end()) return std::nullopt;
  const auto k = static_cast<std::size_t>(above - values.begin());
  const MonotoneCubic curve(member.times, values);
  double low = member.times[k - 1];
  double high = member.times[k];
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = 0.5 * (low + high);
    (curve(middle) < level ? low : high) = middle;
  }
  return high;
}

class LinearStudy final : public Study {
 public:
  explicit LinearStudy(LinearPlan plan) : plan_(std::move(plan)), limit_(linear_attention_limit(plan_.contexts)) {
    for (const LinearDynamics& one : plan_.dynamics) parts_.push_back(one.part());
  }

  [[nodiscard]] const std::vector<DynamicsPart>& dynamics() const override { return parts_; }
  [[nodiscard]] std::size_t values_per_sample(std::size_t /*k*/) const override { return dimension() + 6; }
  void check_times(std::size_t k, const std::vector<double>& times) const override {
    plan_.dynamics.at(k).check_times(times);
  }
  [[nodiscard]] std::string quantities() const override {
    return fmt::format("\"loss\", \"modes[d]\" with d = 0..{}", dimension() - 1);
  }
  [[nodiscard]] bool has_quantity(const std::string& quantity) const override {
    return quantity == "loss" || mode_index(quantity, limit_.size()).has_value();
  }
  [[nodiscard]] std::vector<std::string_view> figures() const override;
  [[nodiscard]] std::vector<std::string_view> expectations() const override;
  void resolve(TomlText& text) const override { iclflow::resolve(plan_, text); }
  [[nodiscard]] Json problem() const override;
  [[nodiscard]] Json predict() const override;
  [[nodiscard]] std::string describe_prediction() const override;
  [[nodiscard]] Json optimum(int /*threads*/) const override {
    return {{"modes", numbers(limit_)}, {"loss", visited_losses(plan_.contexts).back()}};
  }
  [[nodiscard]] std::string describe_optimum(const Json& optimum) const override {
    return fmt::format("best M: diagonal {:.6g}, loss {:.6g}\n", fmt::join(limit_, ", "),
                       optimum.at("loss").get<double>());
  }
  [[nodiscard]] Outcome evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                               const std::vector<Event>& events, int threads, const Control& control) const override;
  [[nodiscard]] Json summarise(const std::vector<DynamicsResult>& results) const override;
  [[nodiscard]] std::vector<DrawnFigure> draw(const std::vector<DynamicsResult>& results, const Json& summary,
                                              const FigureRequest& request) const override;

 private:
  [[nodiscard]] std::size_t dimension() const { return static_cast<std::size_t>(limit_.size()); }
  [[nodiscard]] bool has_kind(std::string_view kind) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const DynamicsPart& part) { return part.kind == kind; });
  }
  [[nodiscard]] bool sigmoid() const { return !plan_.layout.split && plan_.contexts.white(); }
  [[nodiscard]] std::optional<double> escape(std::size_t mode) const;
  [[nodiscard]] std::vector<std::size_t> modes_by_eigenvalue() const;
  void add_escapes(const DynamicsResult& result, Json& json) const;
  [[nodiscard]] Json comparison(const DynamicsResult& theory, const DynamicsResult& simulation) const;
  [[nodiscard]] LossFigure loss_figure(const std::vector<DynamicsResult>& results, const std::string& title) const;
  [[nodiscard]] CourseFigure modes_figure(const std::vector<DynamicsResult>& results, const std::string& title) const;
  [[nodiscard]] LeakageFigure leakage_figure(const std::vector<DynamicsResult>& results,
                                             const std::string& title) const;
  [[nodiscard]] Curve closed_form(double last) const;

  LinearPlan plan_;
  Eigen::VectorXd limit_;
  std::vector<DynamicsPart> parts_;
};

std::vector<std::string_view> LinearStudy::figures() const {
  if (parts_.empty()) return {};
  if (!has_kind("attention")) return {"loss", "modes"};
  return {"loss", "modes", "leakage"};
}

std::vector<std::string_view> LinearStudy::expectations() const {
  if (!has_kind("spectral-flow") || !has_kind("attention")) return {};
  return {"loss_gap", "loss_gap_max", "emergence_time_gap", "mode_gap"};
}

Json LinearStudy::problem() const {
  return {{"attention", "linear"},
          {"heads", plan_.layout.heads},
          {"covariance", numbers(plan_.contexts.covariance)},
          {"dimension", dimension()},
          {"context_length", plan_.contexts.length},
          {"parametrisation", plan_.layout.split ? "split" : "merged"}};
}

/// When a mode has half of its limit: all modes of a merged white start together, each of an aligned split one alone.
std::optional<double> LinearStudy::escape(std::size_t mode) const {
  if (sigmoid()) {
    const ProductLoss loss = white_product_loss(plan_.contexts);
    return time_of_product(loss, white_product(plan_.layout.reduced(), plan_.start()), 0.5 * loss.limit());
  }
  if (!plan_.layout.split || plan_.preset != "aligned") return std::nullopt;
  const int heads = plan_.layout.heads;
  const auto d = static_cast<int>(dimension());
  const int n = heads / d + (static_cast<int>(mode) < heads % d ? 1 : 0);
  if (n == 0) return std::nullopt;
  const auto m = static_cast<Eigen::Index>(mode);
  return split_time(plan_.contexts, m, n, plan_.scale, split_limit(plan_.contexts, m, n) / std::cbrt(2.0));
}

std::vector<std::size_t> LinearStudy::modes_by_eigenvalue() const {
  std::vector<std::size_t> order(dimension());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const Eigen::VectorXd& lambda = plan_.contexts.covariance;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lambda(static_cast<Eigen::Index>(a)) > lambda(static_cast<Eigen::Index>(b));
  });
  return order;
}

Json LinearStudy::predict() const {
  const std::vector<double> visited = visited_losses(plan_.contexts);
  Json json;
  json["modes"] = numbers(limit_);
  json["zero_loss"] = visited.front();
  json["loss"] = visited.back();
  json["visited_loss"] = visited;
  json["growth_rate"] = plan_.contexts.covariance.cwiseAbs2().norm();
  json["escape_time"] = Json::array();
  for (std::size_t d = 0; d < dimension(); ++d) json["escape_time"].push_back(or_null(escape(d)));
  return json;
}

std::string LinearStudy::describe_prediction() const {
  const Json json = predict();
  std::string text = fmt::format("linear attention, {}, {} head{}; covariance {}; N = {}\n",
                                 plan_.layout.split ? "keys and queries apart" : "merged key-query matrices",
                                 plan_.layout.heads, plan_.layout.heads == 1 ? "" : "s",
                                 fmt::join(plan_.contexts.covariance, ", "), plan_.contexts.length);
  text += "losses: half the squared error, noise-free target; times: d theta/dt = -grad loss\n\n";
  const auto row = [&](std::string_view what, const std::string& value, std::string_view note) {
    text += fmt::format("  {:<26}{}   {}\n", what, value, note);
  };
  row("limit of M", fmt::format("{:.6g}", fmt::join(limit_, ", ")), "its diagonal");
  row(plan_.layout.split ? "visited losses" : "losses of fixed points",
      fmt::format("{:.6g}", fmt::join(json["visited_loss"].get<std::vector<double>>(), ", ")),
      "with the 0, 1, .. largest eigenvalues learned");
  if (!plan_.layout.split) {
    row("growth rate", fmt::format("{:.6g}", json["growth_rate"].get<double>()),
        "from zero: the plateau is log(1/scale) over it");
  }
  std::vector<std::string> times;
  for (const Json& time : json["escape_time"]) {
    times.push_back(time.is_number() ? fmt::format("{:.6g}", time.get<double>()) : "no formula");
  }
  row("escape times", fmt::format("{}", fmt::join(times, ", ")), "when each mode has half of its limit");
  return text;
}

Outcome LinearStudy::evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                            const std::vector<Event>& events, int threads, const Control& control) const {
  const LinearDynamics& one = plan_.dynamics.at(k);
  if (one.is_flow()) {
    const LinearAttentionFlow flow(plan_.contexts, plan_.layout.reduced(), plan_.start());
    return integrate(flow, times, one.stepper, events, control);
  }
  LinearSimulationOptions options;
  options.seed = one.seeds.at(member);
  options.batch = one.batch;
  options.evaluation_contexts = one.evaluation_contexts;
  options.threads = threads;
  const auto descent = make_linear_descent(plan_.contexts, plan_.layout, plan_.full_start(options.seed), options);
  return descend(*descent, one.learning_rate, times, events, control);
}

/// escape_time: when each mode has half of its limit, mean over seeds. visited_loss: the mean loss halfway between
/// escapes, in the order of eigenvalues.
void LinearStudy::add_escapes(const DynamicsResult& result, Json& json) const {
  Json times = Json::array();
  Json errors = Json::array();
  for (std::size_t d = 0; d < dimension(); ++d) {
    std::vector<double> own;
    for (const Trajectory& member : result.members) {
      const auto time = rise_time(member, d, 0.5 * limit_(static_cast<Eigen::Index>(d)));
      if (time) own.push_back(*time);
    }
    const bool all = !own.empty() && own.size() == result.members.size();
    const Estimate mean = all ? mean_estimate(own) : Estimate{};
    times.push_back(all ? Json(mean.value) : Json(nullptr));
    errors.push_back(all ? or_null(mean.standard_error) : Json(nullptr));
  }
  json["escape_time"] = times;
  json["escape_time_standard_error"] = std::move(errors);
  json["visited_loss"] = Json::array();
  json["visited_loss_standard_error"] = Json::array();
  if (!plan_.layout.split || course(result, "loss").times.size() < 2) return;
  const auto visit = [&](double time) {
    std::vector<double> own;
    for (const Trajectory& member : result.members) {
      own.push_back(MonotoneCubic(member.times, member["loss"].values)(time));
    }
    const Estimate mean = mean_estimate(own);
    json["visited_loss"].push_back(mean.value);
    json["visited_loss_standard_error"].push_back(or_null(mean.standard_error));
  };
  double before = 0.0;
  for (const std::size_t d : modes_by_eigenvalue()) {
    if (!times[d].is_number()) return;
    const double now = times[d].get<double>();
    visit(0.5 * (before + now));
    before = now;
  }
  visit(course(result, "loss").times.back());
}

Json LinearStudy::comparison(const DynamicsResult& theory, const DynamicsResult& simulation) const {
  Json pair = {{"theory", theory.name}, {"simulation", simulation.name}};
  const Observable& expected = theory.members.front()["loss"];
  const auto loss = observable_gap(theory, simulation, "loss", expected.at(0)[0]);
  add_estimate(pair, "loss_gap", loss.mean);
  add_estimate(pair, "loss_gap_max", loss.maximum);
  add_estimate(pair, "emergence_time_gap", emergence_time_gap(theory, simulation, expected.last()[0]));
  add_estimate(pair, "mode_gap", observable_gap(theory, simulation, "modes", largest_final(theory, "modes")).mean);
  return pair;
}

Json LinearStudy::summarise(const std::vector<DynamicsResult>& results) const {
  Json json;
  json["dynamics"] = Json::array();
  for (const DynamicsResult& result : results) {
    Json own = dynamics_summary(result, visited_losses(plan_.contexts).back());
    own["final_modes"] = Json::array();
    own["final_modes_standard_error"] = Json::array();
    for (std::size_t d = 0; d < dimension(); ++d) {
      Json one;
      add_estimate(one, "mode", final_estimate(result, "modes", d));
      own["final_modes"].push_back(one["mode"]);
      own["final_modes_standard_error"].push_back(one["mode_standard_error"]);
    }
    add_escapes(result, own);
    if (result.kind == "attention") {
      const auto error = final_estimate(result, "loss_standard_error");
      own["evaluation_error"] = error ? Json(error->value) : Json(nullptr);  // shared by all seeds
      for (const char* part : leakage_parts) {
        Json one;
        add_estimate(one, part, final_estimate(result, fmt::format("leakage_{}", part)));
        own["leakage"][part] = one[part];
        own["leakage_standard_error"][part] = one[fmt::format("{}_standard_error", part)];
      }
    }
    json["dynamics"].push_back(std::move(own));
  }
  json["comparison"] = Json::array();
  for (const DynamicsResult& theory : results) {
    if (theory.kind != "spectral-flow" || !is_whole(theory)) continue;
    for (const DynamicsResult& simulation : results) {
      if (simulation.kind == "attention") json["comparison"].push_back(comparison(theory, simulation));
    }
  }
  return json;
}

/// Loss of the closed-form sigmoid.
Curve LinearStudy::closed_form(double last) const {
  const ProductLoss loss = white_product_loss(plan_.contexts);
  const double start = std::sqrt(white_product(plan_.layout.reduced(), plan_.start()));
  Curve curve{"closed form", {}, {}, {}};
  constexpr int points = 200;
  for (int k = 0; k <= points; ++k) {
    curve.times.push_back(last * k / points);
    curve.values.push_back(loss.value(product_at(loss, start, start, curve.times.back())));
  }
  return curve;
}

LossFigure LinearStudy::loss_figure(const std::vector<DynamicsResult>& results, const std::string& title) const {
  LossFigure figure;
  figure.title = title;
  figure.logarithmic_time = plan_.logarithmic_time;
  const DynamicsResult* theory = nullptr;
  double last = 0.0;
  for (const DynamicsResult& result : results) {
    const bool flow = result.kind == "spectral-flow";
    if (flow && theory == nullptr) theory = &result;
    (flow ? figure.theory : figure.simulation).push_back(course(result, "loss"));
    last = std::max(last, course(result, "loss").times.back());
    if (flow || theory == nullptr) continue;
    const Band band = loss_difference(*theory, result);
    figure.difference.push_back(
        {result.name, band.times, band.mean, result.members.size() > 1 ? band.standard_error : std::vector<double>{}});
  }
  if (sigmoid() && !plan_.logarithmic_time) figure.theory.push_back(closed_form(last));
  const std::vector<double> visited = visited_losses(plan_.contexts);
  if (!plan_.layout.split) {
    figure.levels.push_back({"global minimum", visited.back()});
    return figure;
  }
  for (std::size_t m = 0; m < visited.size(); ++m) {
    figure.levels.push_back({fmt::format("{} modes learned", m), visited[m]});
  }
  return figure;
}

CourseFigure LinearStudy::modes_figure(const std::vector<DynamicsResult>& results, const std::string& title) const {
  CourseFigure figure;
  figure.title = title;
  figure.quantity = "{/:Italic M_{dd}}";
  figure.description =
      "Diagonal of M = Σ v_h U_h, the linear map ŷ = βᵀ M x_q that all heads make together, in the "
      "basis of the covariance's eigenvectors, against time t of the flow dθ/dt = −∇ℓ.";
  figure.logarithmic_time = plan_.logarithmic_time;
  std::size_t flows = 0;
  for (const DynamicsResult& result : results) {
    const bool simulation = result.kind == "attention";
    for (std::size_t d = 0; d < dimension(); ++d) {
      Curve curve = course(result, "modes", d);
      const bool labelled = simulation || !has_kind("attention");
      curve.label = labelled ? fmt::format("λ = {:g}", plan_.contexts.covariance(static_cast<Eigen::Index>(d))) : "";
      const bool one_colour = plan_.contexts.white();  // all modes alike
      if (d > 0 && one_colour) curve.label.clear();
      figure.series.push_back({std::move(curve), simulation, one_colour ? 0 : d, simulation ? 0 : flows});
    }
    if (!simulation) ++flows;
  }
  for (std::size_t d = 0; d < dimension(); ++d) {
    if (d > 0 && plan_.contexts.white()) break;
    figure.levels.push_back({d == 0 ? "limit" : "", limit_(static_cast<Eigen::Index>(d)), d});
  }
  return figure;
}

LeakageFigure LinearStudy::leakage_figure(const std::vector<DynamicsResult>& results, const std::string& title) const {
  LeakageFigure figure;
  figure.title = title;
  figure.logarithmic_time = plan_.logarithmic_time;
  for (const DynamicsResult& result : results) {
    if (result.kind != "attention") continue;
    LeakageSeries series{result.name, {}};
    for (std::size_t part = 0; part < series.norms.size(); ++part) {
      series.norms[part] = course(result, fmt::format("leakage_{}", leakage_parts[part]));
    }
    figure.series.push_back(std::move(series));
    if (figure.diagonal.empty()) figure.diagonal.push_back(course(result, "modes", modes_by_eigenvalue().front()));
    figure.diagonal.front().label = "largest mode of M";
  }
  return figure;
}

std::vector<DrawnFigure> LinearStudy::draw(const std::vector<DynamicsResult>& results, const Json& /*summary*/,
                                           const FigureRequest& request) const {
  const std::vector<DynamicsResult> shown = moving(results);
  std::vector<DrawnFigure> drawn;
  for (const std::string& kind : request.figures) {
    if (shown.empty()) {
      drawn.push_back({kind, "", "there are fewer than two samples to draw"});
    } else if (kind == "loss") {
      drawn.push_back(drawn_figure(kind, loss_figure(shown, request.title), request.folder));
    } else if (kind == "modes") {
      drawn.push_back(drawn_figure(kind, modes_figure(shown, request.title), request.folder));
    } else {
      drawn.push_back(drawn_figure(kind, leakage_figure(shown, request.title), request.folder));
    }
  }
  return drawn;
}

}  // namespace

std::unique_ptr<Study> make_linear_study(const Section& root) {
  return std::make_unique<LinearStudy>(read_linear_plan(root));
}

}  // namespace iclflow
