#include <array>
#include <cmath>
#include <cstdio>

#include "drawing.hpp"
#include "utf8.hpp"

namespace iclflow::plots {
namespace {

bool harmless(char c) {
  constexpr std::string_view marks = " .,:+-=()/";
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || marks.find(c) != std::string_view::npos;
}

// Whether the last character was written as an octal number.
bool ends_octal(const std::string& result) { return result.size() >= 4 && result[result.size() - 4] == '\\'; }

// gnuplot reads up to four octal digits, so a digit after an octal number must be one itself.
void append_ascii(char c, std::string& result) {
  const auto code = static_cast<unsigned char>(c);
  const bool digit_after_octal = c >= '0' && c <= '7' && ends_octal(result);
  if (code < 0x20 || code == 0x7F) {
    result += ' ';
  } else if (harmless(c) && !digit_after_octal) {
    result += c;
  } else {
    std::array<char, 5> octal{};
    std::snprintf(octal.data(), octal.size(), "\\%03o", static_cast<unsigned>(code) & 0x7FU);
    result += octal.data();
  }
}

}  // namespace

std::string literal(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      result += "\xEF\xBF\xBD";  // replacement character
    } else if (length == 1) {
      append_ascii(text[0], result);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result + "\" noenhanced";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "NaN";
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
  return buffer.data();
}

}  // namespace iclflow::plots
