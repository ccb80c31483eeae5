#pragma once

#include <string_view>

namespace iclflow {

/// The parser nests one table per dot of a key and takes such tables apart recursively, so that a long enough key
/// would exhaust the stack (nested values have a limit in the parser itself).
inline constexpr int largest_key_dots = 16;

/// Line of the first run of dotted words with more dots than that, or 0. Strings and comments are passed over.
[[nodiscard]] int line_of_deep_key(std::string_view text);

}  // namespace iclflow
