#pragma once

#include <optional>

#include "iclflow/mesa/baselines_section.hpp"
#include "iclflow/mesa/compression_section.hpp"
#include "iclflow/mesa/few_shot_section.hpp"
#include "iclflow/mesa/one_step.hpp"
#include "iclflow/mesa/probes_section.hpp"
#include "iclflow/mesa/sections.hpp"

namespace iclflow {

/// What an experiment asks of its trained weights.
struct TrainedMeasurements {
  std::optional<BaselinePlan> baselines{};
  std::optional<OneStepPlan> one_step{};
  std::optional<CompressionPlan> compression{};
  std::optional<ProbePlan> probes{};      ///< of the first seed
  std::optional<FewShotPlan> few_shot{};  ///< of the first seed
};

/// Sizes that no machine holds are refused before anything is allocated. Throws InputError.
void check_sizes(const Section& root, const AutoregressiveProblem& problem, const TrainingOptions& options,
                 const TrainedMeasurements& measurements);

}  // namespace iclflow
