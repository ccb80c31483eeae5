#include "iclflow/regression/evaluation.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/attention/paired_evaluation.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Problem at_length(const Problem& problem, int length) {
  Problem other = problem;
  other.context_length = length;
  return other;
}

struct Prediction {
  std::optional<double> loss{};
  std::optional<double> standard_error{};  ///< of a closure that samples
};

Prediction prediction(const Estimator& estimator, const Problem& problem) {
  const std::optional<double> exact = exact_loss(estimator, problem);
  if (exact || estimator.kind != EstimatorKind::ridge || estimator.lambda) return {exact};
  return {ridge_loss(problem)};  // asymptotic in d_i
}

/// The closure's loss of the weights at this length; none outside of its domain.
Prediction prediction(const EvaluatedWeights& weights, const Problem& problem) {
  if (!weights.closure) return {};
  const bool blocks = constant_on_blocks(problem, weights.spectral.omega);
  const SpectralState state{weights.spectral.mu,
                            blocks ? block_means(problem, weights.spectral.omega) : weights.spectral.omega};
  const Coordinates coordinates = blocks ? Coordinates::blocks(problem) : Coordinates::full(problem);
  const auto loss = make_population_loss(*weights.closure, problem, coordinates);
  if (!(loss->margin(state.flat()) > 0.0)) return {};
  return {loss->value(state.flat()), loss->standard_error(state.flat())};
}

/// All rows of an evaluation, law by law and length by length.
class Evaluation {
 public:
  Evaluation(const Problem& problem, const EvaluationPlan& plan, const std::vector<EvaluatedWeights>& weights,
             const EvaluationControl& control)
      : problem_(problem), plan_(plan), weights_(weights), control_(control), team_(control.threads) {
    const Rotations basis = rotations(problem);
    for (const EvaluatedWeights& one : weights) {
      WeightGroup group{one.name, {}};
      for (const ActingWeights& member : one.members) group.members.emplace_back(member, basis);
      groups_.push_back(std::move(group));
    }
    for (const int length : plan.context_lengths) all_tokens_ += static_cast<double>(length + 16);
    all_tokens_ *= static_cast<double>(1 + plan.shifts.size());
  }

  Evaluated run() {
    bool whole = evaluate_law({});
    for (const Shift& shift : plan_.shifts) whole = whole && evaluate_law(shift);
    return {{{"evaluation", std::move(rows_)}}, whole};
  }

 private:
  bool evaluate_law(const Shift& shift) {
    for (const int length : plan_.context_lengths) {
      if (!evaluate_length(shift, at_length(problem_, length))) return false;
      done_tokens_ += static_cast<double>(length + 16);
    }
    return true;
  }

  /// One entry per estimator and dynamics; false when interrupted.
  bool evaluate_length(const Shift& shift, const Problem& problem) {
    if (take_kept()) return true;
    std::vector<std::optional<PairedEstimate>> estimates(plan_.estimators.size() + groups_.size());
    if (shift.exists(problem)) {
      PairedEvaluation paired(problem, shift, plan_.seed, plan_.contexts, plan_.estimators, groups_, team_);
      bool more = true;
      while (more) {
        if (control_.interrupted && control_.interrupted()) return false;
        more = paired.advance();
        if (control_.progress) {
          control_.progress((done_tokens_ + paired.fraction() * (problem.context_length + 16.0)) / all_tokens_);
        }
      }
      const std::vector<PairedEstimate> all = paired.estimates();
      std::copy(all.begin(), all.end(), estimates.begin());
    }
    for (std::size_t k = 0; k < estimates.size(); ++k) rows_.push_back(row(k, shift, problem, estimates[k]));
    if (control_.keep) control_.keep({{"evaluation", rows_}});
    return true;
  }

  /// Rows come in one order only, so those that an earlier attempt kept are a beginning of it.
  bool take_kept() {
    const std::size_t count = plan_.estimators.size() + groups_.size();
    const Json* kept = &control_.kept;
    if (!kept->is_object() || !kept->contains("evaluation")) return false;
    const Json& rows = kept->at("evaluation");
    if (rows.size() < rows_.size() + count) return false;
    for (std::size_t k = 0; k < count; ++k) rows_.push_back(rows[rows_.size()]);
    return true;
  }

  [[nodiscard]] Json row(std::size_t k, const Shift& shift, const Problem& problem,
                         const std::optional<PairedEstimate>& estimate) const {
    const bool classical = k < plan_.estimators.size();
    const std::size_t group = classical ? 0 : k - plan_.estimators.size();
    const std::string& name = classical ? plan_.estimators[k].name : groups_[group].name;
    // A query orthogonal to the covariates sees nothing of an inverse.
    const bool inverse = classical && !shift.orthogonal_queries;
    const int moments = inverse ? finite_moments(plan_.estimators[k], problem, shift.noise(problem)) : 2;
    Json json = {{"context_length", problem.context_length}, {"estimator", name}};
    if (!shift.name.empty()) json["shift"] = shift.name;
    const auto shown = [](bool exists, double value) { return or_null(exists ? std::optional(value) : std::nullopt); };
    json["loss"] = shown(estimate && moments > 0, estimate ? estimate->loss : 0.0);
    json["standard_error"] = shown(estimate && moments > 1, estimate ? estimate->standard_error() : 0.0);
    if (estimate && estimate->members_error) {
      json["contexts_error"] = or_null(estimate->contexts_error);
      json["seeds_error"] = or_null(estimate->members_error);
    }
    Prediction predicted;
    if (shift.name.empty()) {
      predicted = classical ? prediction(plan_.estimators[k], problem) : prediction(weights_[group], problem);
    }
    json["prediction"] = or_null(predicted.loss);
    if (predicted.standard_error) json["prediction_standard_error"] = or_null(predicted.standard_error);
    return json;
  }

  const Problem& problem_;
  const EvaluationPlan& plan_;
  const std::vector<EvaluatedWeights>& weights_;
  const EvaluationControl& control_;
  ThreadTeam team_;
  std::vector<WeightGroup> groups_;
  Json rows_ = Json::array();
  double done_tokens_ = 0.0;
  double all_tokens_ = 0.0;
};

std::optional<double> number(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

EvaluationPanel& panel_of(EvaluationFigure& figure, const std::string& law) {
  const auto found = std::find_if(figure.panels.begin(), figure.panels.end(),
                                  [&](const EvaluationPanel& panel) { return panel.law == law; });
  if (found != figure.panels.end()) return *found;
  figure.panels.push_back({law});
  return figure.panels.back();
}

EvaluationCurve& curve_of(EvaluationPanel& panel, const std::string& label) {
  const auto found = std::find_if(panel.curves.begin(), panel.curves.end(),
                                  [&](const EvaluationCurve& curve) { return curve.label == label; });
  if (found != panel.curves.end()) return *found;
  panel.curves.push_back({});
  panel.curves.back().label = label;
  return panel.curves.back();
}

}  // namespace

Evaluated evaluate_weights(const Problem& problem, const EvaluationPlan& plan,
                           const std::vector<EvaluatedWeights>& weights, const EvaluationControl& control) {
  return Evaluation(problem, plan, weights, control).run();
}

EvaluationFigure evaluation_figure(const Json& evaluation, const EvaluationPlan& plan, const std::string& title,
                                   const Problem& problem, const std::vector<std::string>& dynamics) {
  EvaluationFigure figure;
  figure.title = title;
  figure.training_length = problem.context_length;
  figure.logarithmic_length = plan.axes == "log";
  figure.logarithmic_loss = plan.axes != "linear";
  for (const Json& row : evaluation) {
    const auto law = row.find("shift");
    EvaluationPanel& panel = panel_of(figure, law == row.end() ? "training law" : law->get<std::string>());
    EvaluationCurve& curve = curve_of(panel, row.at("estimator").get<std::string>());
    curve.weights = std::find(dynamics.begin(), dynamics.end(), curve.label) != dynamics.end();
    curve.lengths.push_back(row.at("context_length").get<double>());
    curve.losses.push_back(number(row, "loss").value_or(NAN));
    curve.standard_errors.push_back(number(row, "standard_error").value_or(NAN));
    curve.predictions.push_back(number(row, "prediction").value_or(NAN));
  }
  double power = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) power += problem.signal_power(i);
  for (EvaluationPanel& panel : figure.panels) panel.zero_loss = 0.5 * power;
  for (const Shift& shift : plan.shifts) {
    // Skewed covariances keep their trace, orthogonal queries their length.
    panel_of(figure, shift.name).zero_loss = 0.5 * power * shift.input_scale * shift.input_scale;
  }
  for (EvaluationPanel& panel : figure.panels) {
    std::stable_partition(panel.curves.begin(), panel.curves.end(), [](const auto& curve) { return curve.weights; });
    for (EvaluationCurve& curve : panel.curves) {
      if (curve.label == "debiased-gradient-step") curve.label = "de-biased step";  // two legend columns
    }
  }
  // Laws that an interrupted run has not reached.
  std::erase_if(figure.panels, [](const EvaluationPanel& panel) { return panel.curves.empty(); });
  return figure;
}

}  // namespace iclflow
