#include <array>
#include <cmath>
#include <cstdio>

#include "drawing.hpp"
#include "utf8.hpp"

namespace iclflow::plots {
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
