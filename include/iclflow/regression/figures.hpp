#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "iclflow/experiment/system.hpp"
#include "iclflow/plots/allocation_figure.hpp"
#include "iclflow/plots/leakage_figure.hpp"
#include "iclflow/plots/loss_figure.hpp"
#include "iclflow/plots/spectrum_figure.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/regression/evaluation_section.hpp"

namespace iclflow {

/// What the figures of a regression run are made of.
struct FigureSource {
  const Problem& problem;
  const std::vector<DynamicsResult>& results;
  const nlohmann::ordered_json& summary;  ///< phases, predicted limits
  std::string title;
  bool logarithmic_time = false;
  const EvaluationPlan* evaluation = nullptr;  ///< of [evaluation], if any
};

[[nodiscard]] LossFigure loss_figure(const FigureSource& source);
[[nodiscard]] SpectrumFigure spectrum_figure(const FigureSource& source);
/// At the start, the first theory's phases (or the simulation's) and the end.
[[nodiscard]] AllocationFigure allocation_figure(const FigureSource& source);
[[nodiscard]] LeakageFigure leakage_figure(const FigureSource& source);

/// Draws folder/kind.{svg,pdf,png}; kind as in Study::figures().
[[nodiscard]] DrawnFigure draw_figure(const std::string& kind, const FigureSource& source,
                                      const std::filesystem::path& folder);

}  // namespace iclflow
