#pragma once

#include <filesystem>

#include "iclflow/experiment/system.hpp"
#include "iclflow/mesa/stack.hpp"

namespace iclflow {

/// What a training experiment's figures are drawn from.
struct TrainingSource {
  const StackShape& shape;
  const std::vector<DynamicsResult>& results;
  const nlohmann::ordered_json& summary;
  const std::string& title;
};

/// One figure of Study::figures(); says why where there is none. Throws std::invalid_argument for another name.
[[nodiscard]] DrawnFigure draw_training_figure(const std::string& kind, const TrainingSource& source,
                                               const std::filesystem::path& folder);

}  // namespace iclflow
