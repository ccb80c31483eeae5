#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "iclflow/problem/initial.hpp"

namespace iclflow {

/// `prediction` of summary.json: closed forms under the large-context closure. Losses are ell (half, noise-free target,
/// summed over tasks), times those of d theta/dt = -grad ell. What does not exist is null.
[[nodiscard]] nlohmann::ordered_json prediction_json(const Problem& problem, const InitialState& start);
/// The same for a reader: units and one line of explanation each.
[[nodiscard]] std::string prediction_text(const Problem& problem, const InitialState& start);

}  // namespace iclflow
