#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/plots/figure.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// A finite number, else null: JSON has no other word for what does not exist.
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<double>& value);
/// `events` of one dynamics: [{quantity, level, direction, time, seed}].
[[nodiscard]] nlohmann::ordered_json events_summary(const DynamicsResult& result);

/// key and key_standard_error; null where there is none or it is not finite.
void add_estimate(nlohmann::ordered_json& json, std::string_view key, const std::optional<Estimate>& estimate);

/// An entry of an observable's last sample, mean over the members; empty where none has begun.
[[nodiscard]] std::optional<Estimate> final_estimate(const DynamicsResult& result, std::string_view observable,
                                                     std::size_t entry = 0);

/// What the summary of every dynamics begins with, whatever the system: name, kind, status, failure, seeds, final time
/// and loss, phases with respect to end_loss (null without), and events, evaluations, wall_seconds.
[[nodiscard]] nlohmann::ordered_json dynamics_summary(const DynamicsResult& result,
                                                      const std::optional<double>& end_loss);

/// Neither failed nor interrupted.
[[nodiscard]] bool is_whole(const DynamicsResult& result);
/// Mean over members of one entry of an observable, with its band where there are several.
[[nodiscard]] Curve course(const DynamicsResult& result, std::string_view observable, std::size_t entry = 0);

}  // namespace iclflow
