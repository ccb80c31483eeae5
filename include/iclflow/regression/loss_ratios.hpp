#pragma once

#include <nlohmann/json.hpp>

#include "iclflow/problem/problem.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// Adds to an entry of `dynamics` (with standard errors where there are seeds): late_loss, the mean over the last half
/// of the samples; final_x = ell/(sum_i P_i/2 - ell) at the final time (null unless positive); final_coefficient =
/// final_x L/(phi d_i) (null for unequal tasks).
void add_loss_ratios(const Problem& problem, const DynamicsResult& result, nlohmann::ordered_json& dynamics);

}  // namespace iclflow
