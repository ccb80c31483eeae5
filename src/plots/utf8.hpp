#pragma once

#include <cstddef>
#include <string_view>

namespace iclflow::plots {

/// Bytes of the well-formed UTF-8 sequence (RFC 3629) at the start of non-empty text; 0 when it is broken or one of
/// the two code points that XML forbids.
[[nodiscard]] std::size_t sequence_length(std::string_view text);

}  // namespace iclflow::plots
