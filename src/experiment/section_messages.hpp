#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/experiment/section.hpp"

namespace iclflow {

/// Pieces of Section's messages: a value as it is shown, and what is allowed.
[[nodiscard]] std::string shown(const Value& value);
[[nodiscard]] std::string allowed_numbers(Sign sign);
[[nodiscard]] std::string allowed_integers(std::int64_t low, std::int64_t high);
[[nodiscard]] std::string in_quotes(const std::vector<std::string_view>& words);

}  // namespace iclflow
