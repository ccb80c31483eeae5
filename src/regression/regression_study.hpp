#pragma once

#include <optional>
#include <vector>

#include "iclflow/experiment/system.hpp"
#include "iclflow/regression/closure_table.hpp"
#include "iclflow/regression/dynamics_section.hpp"
#include "iclflow/regression/evaluation.hpp"
#include "iclflow/regression/initial_section.hpp"
#include "iclflow/regression/optimum_section.hpp"
#include "iclflow/regression/stability_section.hpp"

namespace iclflow {

/// What an experiment asks for beside its dynamics.
struct Measurements {
  std::optional<EvaluationPlan> evaluation{};
  std::optional<OptimumPlan> optimum{};
  std::optional<StabilityPlan> stability{};
  std::optional<ClosurePlan> closures{};
};

/// One regression experiment, parsed.
class RegressionStudy final : public Study {
 public:
  RegressionStudy(Problem problem, Start start, std::vector<RegressionDynamics> dynamics, bool logarithmic_time,
                  Measurements measurements);

  [[nodiscard]] const std::vector<DynamicsPart>& dynamics() const override { return parts_; }
  [[nodiscard]] std::size_t values_per_sample(std::size_t k) const override;
  void check_times(std::size_t k, const std::vector<double>& times) const override;
  [[nodiscard]] std::string quantities() const override;
  [[nodiscard]] bool has_quantity(const std::string& quantity) const override;
  [[nodiscard]] std::vector<std::string_view> figures() const override;
  [[nodiscard]] std::vector<std::string_view> further_figures() const override { return {"regimes"}; }
  [[nodiscard]] std::vector<std::string_view> expectations() const override;
  void resolve(TomlText& text) const override;
  [[nodiscard]] std::vector<Attachment> attachments() const override { return start_.attachments(); }
  [[nodiscard]] nlohmann::ordered_json problem() const override;
  [[nodiscard]] nlohmann::ordered_json predict() const override;
  [[nodiscard]] std::string describe_prediction() const override;
  [[nodiscard]] nlohmann::ordered_json optimum(int threads) const override;
  [[nodiscard]] std::string describe_optimum(const nlohmann::ordered_json& optimum) const override;
  [[nodiscard]] Outcome evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                               const std::vector<Event>& events, int threads, const Control& control) const override;
  [[nodiscard]] Evaluated evaluate_final(const std::vector<DynamicsResult>& results,
                                         const EvaluationControl& control) const override;
  [[nodiscard]] nlohmann::ordered_json summarise(const std::vector<DynamicsResult>& results) const override;
  [[nodiscard]] std::vector<DrawnFigure> draw(const std::vector<DynamicsResult>& results,
                                              const nlohmann::ordered_json& summary,
                                              const FigureRequest& request) const override;

 private:
  [[nodiscard]] bool has_kind(std::string_view kind) const;
  [[nodiscard]] SpectralFlow flow(const RegressionDynamics& dynamics, int threads) const;
  [[nodiscard]] Outcome evolve_fixed(const RegressionDynamics& dynamics, int threads) const;
  [[nodiscard]] nlohmann::ordered_json stability(const std::vector<DynamicsResult>& results, int threads,
                                                 bool theory_only) const;
  [[nodiscard]] SpectralState final_spectrum(const DynamicsResult& result) const;
  [[nodiscard]] EvaluatedWeights final_weights(const DynamicsResult& result, int threads) const;
  [[nodiscard]] const RegressionDynamics& named(const std::string& name) const;

  Problem problem_;
  Start start_;
  std::vector<RegressionDynamics> dynamics_;
  std::vector<DynamicsPart> parts_;
  bool logarithmic_time_;
  Measurements measurements_;
};

}  // namespace iclflow
