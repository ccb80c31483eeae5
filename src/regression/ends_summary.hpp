#pragma once

#include "iclflow/regression/summary.hpp"

namespace iclflow {

/// `emergence` and `ends` of one entry of `dynamics`: numbers of tasks, means over members, each with
/// `<key>_standard_error` where there are seeds. emergence: {emerged, largest_value (won by the head with the largest
/// initial |mu|), order (won by the head that emergence_order puts first; null without an order), heads (different
/// winners)}, and strength, the largest
/// entry of emergence_order for each task; ends: how many tasks end in each of the ways of analysis/ends.hpp, and
/// one_sign = dedicated + superposed + shared, both_signs = zero_sum + opposed.
void add_ends(const DynamicsSummary& dynamics, nlohmann::ordered_json& json);

}  // namespace iclflow
