#pragma once

#include <vector>

#include "iclflow/experiment/system.hpp"
#include "training_sizes.hpp"

namespace iclflow {

/// One training experiment, parsed.
class TrainingStudy final : public Study {
 public:
  TrainingStudy(AutoregressiveProblem problem, TrainingOptions options, TrainedMeasurements measurements);

  [[nodiscard]] const std::vector<DynamicsPart>& dynamics() const override { return parts_; }
  [[nodiscard]] std::size_t values_per_sample(std::size_t k) const override;
  void check_times(std::size_t, const std::vector<double>&) const override {}
  [[nodiscard]] std::string quantities() const override { return "\"loss\""; }
  [[nodiscard]] bool has_quantity(const std::string& quantity) const override { return quantity == "loss"; }
  [[nodiscard]] std::vector<std::string_view> figures() const override;
  [[nodiscard]] std::vector<std::string_view> expectations() const override { return {}; }
  void resolve(TomlText& text) const override;
  [[nodiscard]] nlohmann::ordered_json problem() const override;
  [[nodiscard]] nlohmann::ordered_json predict() const override;
  [[nodiscard]] bool predicts_by_sampling() const override { return true; }
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
  AutoregressiveProblem problem_;
  TrainingOptions options_;
  TrainedMeasurements measurements_;
  std::vector<DynamicsPart> parts_;
};

}  // namespace iclflow
