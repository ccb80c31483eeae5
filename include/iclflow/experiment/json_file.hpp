#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace iclflow {

/// Parses a JSON text strictly: one document, no duplicate keys, numbers that doubles can hold.
/// Throws InputError "FILE:LINE: ..." for syntax and "FILE: key ..." for duplicate keys.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& file);
/// read_text() and parse_json().
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

}  // namespace iclflow
