#pragma once

#include <string>
#include <utility>
#include <vector>

#include "iclflow/experiment/run_folder.hpp"

namespace iclflow {

/// Draws an experiment's figures into its run folder and writes report.html. Returns one sentence for every figure that
/// could not be drawn (once when all failed alike). Throws std::runtime_error when report.html cannot be written.
[[nodiscard]] std::vector<std::string> write_figures_and_report(const Experiment& experiment, const RunFolder& folder,
                                                                const std::vector<DynamicsResult>& results,
                                                                const nlohmann::ordered_json& summary);

/// What the program was built with: {"Eigen", "3.4.0"}, ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> library_versions();

}  // namespace iclflow
