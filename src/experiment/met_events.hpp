#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "iclflow/experiment/experiment.hpp"

namespace iclflow {

/// Adds `event` to every entry of summary.json's dynamics: for each [[event]] of the file, in order, how many members
/// met it (count), the mean of the times when they first did, and its standard error.
void add_met_events(const Experiment& experiment, const std::vector<DynamicsResult>& results,
                    nlohmann::ordered_json& summary);

}  // namespace iclflow
