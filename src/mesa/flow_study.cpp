#include "iclflow/mesa/flow_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <utility>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/experiment/drawn_figure.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/integrate/descent.hpp"
#include "iclflow/mesa/flow_section.hpp"
#include "iclflow/plots/course_figure.hpp"
#include "iclflow/plots/loss_figure.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> watched{"loss", "a", "b", "product", "leakage"};

class AutoregressiveFlowStudy final : public Study {
 public:
  explicit AutoregressiveFlowStudy(AutoregressivePlan plan)
      : plan_(std::move(plan)), loss_(product_loss(plan_.sequences)) {
    for (const AutoregressiveDynamics& one : plan_.dynamics) parts_.push_back(one.part());
  }

  [[nodiscard]] const std::vector<DynamicsPart>& dynamics() const override { return parts_; }
  [[nodiscard]] std::size_t values_per_sample(std::size_t /*k*/) const override { return watched.size() + 1; }
  void check_times(std::size_t k, const std::vector<double>& times) const override {
    plan_.dynamics.at(k).check_times(times);
  }
  [[nodiscard]] std::string quantities() const override { return listed({watched.begin(), watched.end()}); }
  [[nodiscard]] bool has_quantity(const std::string& quantity) const override {
    return std::find(watched.begin(), watched.end(), quantity) != watched.end();
  }
  [[nodiscard]] std::vector<std::string_view> figures() const override;
  [[nodiscard]] std::vector<std::string_view> expectations() const override;
  void resolve(TomlText& text) const override { iclflow::resolve(plan_, text); }
  [[nodiscard]] Json problem() const override;
  [[nodiscard]] Json predict() const override;
  [[nodiscard]] std::string describe_prediction() const override;
  [[nodiscard]] Json optimum(int /*threads*/) const override {
    return {{"product", loss_.limit()}, {"loss", loss_.value(loss_.limit())}};
  }
  [[nodiscard]] std::string describe_optimum(const Json& /*optimum*/) const override {
    return fmt::format("best product a b of the two parameters: {:.6g}, loss {:.6g}\n", loss_.limit(),
                       loss_.value(loss_.limit()));
  }
  [[nodiscard]] Outcome evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                               const std::vector<Event>& events, int threads, const Control& control) const override;
  [[nodiscard]] Json summarise(const std::vector<DynamicsResult>& results) const override;
  [[nodiscard]] std::vector<DrawnFigure> draw(const std::vector<DynamicsResult>& results, const Json& summary,
                                              const FigureRequest& request) const override;

 private:
  [[nodiscard]] bool has_kind(std::string_view kind) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const DynamicsPart& part) { return part.kind == kind; });
  }
  [[nodiscard]] std::optional<double> half_time() const;
  [[nodiscard]] Curve closed_form(const std::vector<DynamicsResult>& results) const;
  [[nodiscard]] LossFigure loss_figure(const std::vector<DynamicsResult>& results, const std::string& title) const;
  [[nodiscard]] CourseFigure product_figure(const std::vector<DynamicsResult>& results, const std::string& title) const;

  AutoregressivePlan plan_;
  ProductLoss loss_;
  std::vector<DynamicsPart> parts_;
};

std::vector<std::string_view> AutoregressiveFlowStudy::figures() const {
  if (parts_.empty()) return {};
  return {"loss", "product"};
}

std::vector<std::string_view> AutoregressiveFlowStudy::expectations() const {
  if (!has_kind("spectral-flow") || !has_kind("attention")) return {};
  return {"loss_gap", "loss_gap_max", "product_gap"};
}

Json AutoregressiveFlowStudy::problem() const {
  const UnitarySequences& s = plan_.sequences;
  return {{"kind", name(s.kind)},       {"state_dimension", s.dimension},   {"length", s.length},
          {"initial", name(s.initial)}, {"initial_scale", s.initial_scale}, {"layers", {"linear"}}};
}

/// When a balanced positive start has half of its limit.
std::optional<double> AutoregressiveFlowStudy::half_time() const {
  if (plan_.a != plan_.b || plan_.a == 0.0) return std::nullopt;
  return time_of_product(loss_, plan_.a * plan_.b, 0.5 * loss_.limit());
}

Json AutoregressiveFlowStudy::predict() const {
  const StateMoments moments = state_moments(plan_.sequences);
  const double limit = loss_.limit();
  Json json;
  json["kappa1"] = moments.kappa1;
  json["kappa2"] = moments.kappa2;
  json["kappa3"] = moments.kappa3;
  json["linear"] = loss_.linear;
  json["quadratic"] = loss_.quadratic;
  json["product"] = limit;
  json["zero_loss"] = loss_.value(0.0);
  json["loss"] = loss_.value(limit);
  json["explained"] = 1.0 - loss_.value(limit) / loss_.value(0.0);
  json["ratio"] = mean_ratio(plan_.sequences, limit);
  const auto half = half_time();
  json["half_time"] = half ? Json(*half) : Json(nullptr);
  return json;
}

std::string AutoregressiveFlowStudy::describe_prediction() const {
  const UnitarySequences& s = plan_.sequences;
  const StateMoments moments = state_moments(s);
  const double limit = loss_.limit();
  std::string text = fmt::format("x_(t+1) = W x_t, {} W, d = {}, T = {}, x_1 {} of scale {:g}\n", name(s.kind),
                                 s.dimension, s.length, name(s.initial), s.initial_scale);
  text += "losses: half the squared error, summed over t and coordinates; times: d theta/dt = -grad loss\n\n";
  const auto row = [&](std::string_view what, double value, std::string_view note) {
    text += fmt::format("  {:<26}{:<14.6g}{}\n", what, value, note);
  };
  row("kappa1", moments.kappa1, "E |z_j|^4");
  row("kappa2", moments.kappa2, "E |z_j|^6");
  row("kappa3", moments.kappa3, "sum over r other than j of E |z_j|^2 |z_r|^4");
  row("A", loss_.linear, "a' = b (A - B a b), b' = a (A - B a b)");
  row("B", loss_.quadratic, "");
  row("limit of a b", limit, "A / B");
  row("ratio", mean_ratio(s, limit), "mean of prediction / x_(t+1) for long sequences");
  row("loss, zero predictor", loss_.value(0.0), "");
  row("loss, limit", loss_.value(limit), "");
  const auto half = half_time();
  text += fmt::format("  {:<26}{:<14}{}\n", "time of half the limit", half ? fmt::format("{:.6g}", *half) : "none",
                      "log(A / (B s_0) - 1) / (2 A), of a balanced start");
  return text;
}

Outcome AutoregressiveFlowStudy::evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                                        const std::vector<Event>& events, int threads, const Control& control) const {
  const AutoregressiveDynamics& one = plan_.dynamics.at(k);
  if (one.is_flow()) return integrate(ProductFlow(loss_, plan_.a, plan_.b), times, one.stepper, events, control);
  ComplexAttentionOptions options;
  options.sequences = plan_.sequences;
  options.a = plan_.a;
  options.b = plan_.b;
  options.perturbation = plan_.perturbation;
  options.active_blocks = one.active_blocks;
  options.seed = one.seeds.at(member);
  options.batch = one.batch;
  options.evaluation_contexts = one.evaluation_contexts;
  options.threads = threads;
  return descend(*make_complex_attention(options), one.learning_rate, times, events, control);
}

Json AutoregressiveFlowStudy::summarise(const std::vector<DynamicsResult>& results) const {
  Json json;
  json["dynamics"] = Json::array();
  for (const DynamicsResult& result : results) {
    Json own = dynamics_summary(result, loss_.value(loss_.limit()));
    for (const char* quantity : {"a", "b", "product", "leakage"}) {
      add_estimate(own, fmt::format("final_{}", quantity), final_estimate(result, quantity));
    }
    if (auto ratio = final_estimate(result, "product")) {
      const double unit = mean_ratio(plan_.sequences, 1.0);
      ratio->value *= unit;
      if (ratio->standard_error) *ratio->standard_error *= unit;
      add_estimate(own, "final_ratio", ratio);
    }
    if (result.kind == "attention") {
      const auto error = final_estimate(result, "loss_standard_error");
      own["evaluation_error"] = error ? Json(error->value) : Json(nullptr);  // shared by all seeds
    }
    json["dynamics"].push_back(std::move(own));
  }
  json["comparison"] = Json::array();
  for (const DynamicsResult& theory : results) {
    if (theory.kind != "spectral-flow" || !is_whole(theory)) continue;
    for (const DynamicsResult& simulation : results) {
      if (simulation.kind != "attention") continue;
      Json pair = {{"theory", theory.name}, {"simulation", simulation.name}};
      const auto loss = observable_gap(theory, simulation, "loss", theory.members.front()["loss"].at(0)[0]);
      const auto product = observable_gap(theory, simulation, "product", largest_final(theory, "product"));
      add_estimate(pair, "loss_gap", loss.mean);
      add_estimate(pair, "loss_gap_max", loss.maximum);
      add_estimate(pair, "product_gap", product.mean);
      add_estimate(pair, "product_gap_max", product.maximum);
      json["comparison"].push_back(std::move(pair));
    }
  }
  return json;
}

Curve AutoregressiveFlowStudy::closed_form(const std::vector<DynamicsResult>& results) const {
  Curve curve{"closed form", {}, {}, {}};
  double last = 0.0;
  for (const DynamicsResult& result : results) last = std::max(last, course(result, "product").times.back());
  constexpr int points = 200;
  for (int k = 0; k <= points; ++k) {
    curve.times.push_back(last * k / points);
    curve.values.push_back(product_at(loss_, plan_.a, plan_.b, curve.times.back()));
  }
  return curve;
}

LossFigure AutoregressiveFlowStudy::loss_figure(const std::vector<DynamicsResult>& results,
                                                const std::string& title) const {
  LossFigure figure;
  figure.title = title;
  figure.logarithmic_time = plan_.logarithmic_time;
  for (const DynamicsResult& result : results) {
    (result.kind == "spectral-flow" ? figure.theory : figure.simulation).push_back(course(result, "loss"));
  }
  figure.levels.push_back({"limit of the two parameters", loss_.value(loss_.limit())});
  return figure;
}

CourseFigure AutoregressiveFlowStudy::product_figure(const std::vector<DynamicsResult>& results,
                                                     const std::string& title) const {
  CourseFigure figure;
  figure.title = title;
  figure.quantity = "{/:Italic s} = {/:Italic ab}";
  figure.description =
      "Product s = a b of the two parameters of autoregressive linear attention against time t of the "
      "flow dθ/dt = −∇ℓ.";
  figure.logarithmic_time = plan_.logarithmic_time;
  std::size_t colour = 0;
  for (const DynamicsResult& result : results) {
    const bool simulation = result.kind == "attention";
    figure.series.push_back({course(result, "product"), simulation, simulation ? colour : 0, 0});
    if (!simulation) continue;
    figure.strip.push_back({course(result, "leakage"), true, colour, 0});
    ++colour;
  }
  if (!plan_.logarithmic_time) figure.series.push_back({closed_form(results), false, 0, 1});
  figure.levels.push_back({"limit A/B", loss_.limit(), 3});
  figure.strip_quantity = "leakage";
  if (!figure.strip.empty()) {
    figure.description += " Lower strip: root sum of squares of everything else in the full parameters.";
  }
  return figure;
}

std::vector<DrawnFigure> AutoregressiveFlowStudy::draw(const std::vector<DynamicsResult>& results,
                                                       const Json& /*summary*/, const FigureRequest& request) const {
  const std::vector<DynamicsResult> shown = moving(results);
  std::vector<DrawnFigure> drawn;
  for (const std::string& kind : request.figures) {
    if (shown.empty()) {
      drawn.push_back({kind, "", "there are fewer than two samples to draw"});
    } else if (kind == "loss") {
      drawn.push_back(drawn_figure(kind, loss_figure(shown, request.title), request.folder));
      drawn.back().caption =
          "Population loss ℓ = ½ Σ E|ŷ_t − x_{t+1}|², summed over t and coordinates, against time t of "
          "the flow dθ/dt = −∇ℓ. Dark thin line: two-parameter flow. Light broad lines: full-parameter "
          "simulation, mean over seeds; bands: ±2 standard errors of that mean. Dashed: the limit.";
    } else {
      drawn.push_back(drawn_figure(kind, product_figure(shown, request.title), request.folder));
    }
  }
  return drawn;
}

}  // namespace

std::unique_ptr<Study> make_autoregressive_flow(const Section& root) {
  return std::make_unique<AutoregressiveFlowStudy>(read_autoregressive_plan(root));
}

}  // namespace iclflow
