#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "iclflow/experiment/report.hpp"

namespace iclflow {
namespace {

std::string printed(const char* format, int digits, double value) {
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, format, digits, value);
  std::string text = buffer;
  if (text.front() == '-') text.replace(0, 1, "−");
  return text;
}

std::string power_of_ten(int exponent) {
  static const char* const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "×10⁻" : "×10";
  for (const char digit : std::to_string(std::abs(exponent))) text += raised[digit - '0'];
  return text;
}

int decade(double value) { return static_cast<int>(std::floor(std::log10(std::abs(value)))); }

// Plain decimals from here to there; powers of ten beyond.
constexpr int smallest_plain = -4;
constexpr int largest_plain = 5;

}  // namespace

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  if (value == 0.0) return "0";
  const std::string scientific = printed("%.*e", digits - 1, value);
  const std::size_t mark = scientific.find('e');
  const int exponent = std::atoi(scientific.c_str() + mark + 1);  // after rounding
  if (exponent >= smallest_plain && exponent <= largest_plain) {
    std::string text = printed("%.*f", std::max(0, digits - 1 - exponent), value);
    if (text.find('.') == std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  std::string mantissa = scientific.substr(0, mark);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return mantissa + power_of_ten(exponent);
}

std::string with_error(double value, double standard_error) {
  if (!std::isfinite(value)) return "–";
  if (!std::isfinite(standard_error) || !(standard_error > 0.0)) return significant(value);
  const int error_decade = decade(standard_error);
  const double leading = standard_error / std::pow(10.0, error_decade);
  const int last = error_decade - (leading < 1.95 ? 1 : 0);  // decade of the last digit that is printed
  const auto error = std::llround(standard_error / std::pow(10.0, last));
  const int top = std::max(value == 0.0 ? error_decade : decade(value), error_decade);
  if (top > largest_plain || top < smallest_plain) {
    return printed("%.*f", std::max(0, top - last), value / std::pow(10.0, top)) + "(" + std::to_string(error) + ")" +
           power_of_ten(top);
  }
  if (last < 0) return printed("%.*f", -last, value) + "(" + std::to_string(error) + ")";
  const double unit = std::pow(10.0, last);
  return printed("%.*f", 0, std::round(value / unit) * unit) + "(" +
         printed("%.*f", 0, static_cast<double>(error) * unit) + ")";
}

}  // namespace iclflow
