#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "iclflow/analysis/phases.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/problem/spectral_state.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// What is known of one dynamics besides its trajectories.
struct DynamicsSummary {
  const DynamicsResult* result = nullptr;
  std::optional<Phases> exact_phases{};  ///< of a reduced flow
  std::optional<double> end_loss{};      ///< the level that phases refer to; empty: there are no phases
  const Matrix* initial_mu = nullptr;    ///< H x I
  std::optional<Matrix> order{};         ///< emergence_order of the start; empty where there is none
};

/// One entry of `dynamics` of summary.json. H x I arrays; standard errors are over seeds, null with fewer than two.
[[nodiscard]] nlohmann::ordered_json dynamics_json(const DynamicsSummary& dynamics);

/// One entry of `comparison`: gaps, each with `<gap>_standard_error`.
[[nodiscard]] nlohmann::ordered_json comparison_json(const DynamicsResult& theory, const DynamicsResult& simulation,
                                                     double end_loss);

}  // namespace iclflow
