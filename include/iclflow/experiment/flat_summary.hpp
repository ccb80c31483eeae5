#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace iclflow {

/// Every number of a summary.json with its path, in the order of the file: "dynamics.theory.final_mu[0][1]",
/// "comparison.theory.simulation.loss_gap", "evaluation.100.ridge.loss". The standard error of X is X_standard_error,
/// of lists too. True and false are 1 and 0; null, text, wall-clock times and what describes the run (version, seeds,
/// problem, checks) are left out.
using FlatSummary = std::vector<std::pair<std::string, double>>;
[[nodiscard]] FlatSummary flatten(const nlohmann::ordered_json& summary);

}  // namespace iclflow
