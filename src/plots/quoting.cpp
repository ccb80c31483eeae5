#include <array>
#include <cmath>
#include <cstdio>

#include "drawing.hpp"

namespace iclflow::plots {
namespace {

// Length of the well-formed UTF-8 sequence at the start of text, 0 when broken (RFC 3629).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate_or_beyond = (first == 0xED && byte(1) > 0x9F) || (first == 0xF4 && byte(1) > 0x8F);
  const bool not_a_character = first == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE;  // forbidden in XML
  return overlong || surrogate_or_beyond || not_a_character ? 0 : length;
}

}  // namespace

std::string single_quoted(std::string_view text) {
  std::string result = "'";
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      result += "\xEF\xBF\xBD";  // replacement character
    } else if (length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F)) {
      result += ' ';
    } else if (text[0] == '\'') {
      result += "''";
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + "'";
}

std::string literal(std::string_view text) { return single_quoted(text) + " noenhanced"; }

std::string number(double value) {
  if (!std::isfinite(value)) return "NaN";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
  return buffer.data();
}

}  // namespace iclflow::plots
