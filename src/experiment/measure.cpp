#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "iclflow/experiment/check.hpp"

namespace iclflow {

namespace {

constexpr std::string_view grammar =
    "a path of summary.json, mean(COLUMN), min(COLUMN), max(COLUMN), at(COLUMN, MEMBER), ratio(A, B), difference(A, B)";

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

/// "mean(x)" as function and arguments; function is empty for a path. Two arguments part at the first comma that is in
/// no brackets, so that a member's name may hold commas.
struct Call {
  std::string function;
  std::vector<std::string> arguments;
};

std::size_t first_comma(std::string_view text) {
  int depth = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '(') ++depth;
    if (text[k] == ')') --depth;
    if (text[k] == ',' && depth == 0) return k;
  }
  return std::string_view::npos;
}

Call parse(const std::string& text) {
  constexpr std::array<std::string_view, 6> functions{"mean", "min", "max", "at", "ratio", "difference"};
  for (const std::string_view function : functions) {
    if (!text.starts_with(fmt::format("{}(", function)) || !text.ends_with(')')) continue;
    const std::string_view inside =
        std::string_view(text).substr(function.size() + 1, text.size() - function.size() - 2);
    Call call{std::string(function), {}};
    const bool two = function == "at" || function == "ratio" || function == "difference";
    const std::size_t comma = two ? first_comma(inside) : std::string_view::npos;
    call.arguments.push_back(trimmed(inside.substr(0, comma)));
    if (comma != std::string_view::npos) call.arguments.push_back(trimmed(inside.substr(comma + 1)));
    return call;
  }
  return {"", {text}};
}

/// A path has no blanks and no brackets but [k].
bool well_formed(const std::string& text) {
  const Call call = parse(text);
  const std::string& first = call.arguments.front();
  if (call.function.empty()) return !first.empty() && first.find_first_of(" ()") == std::string::npos;
  if (call.function == "ratio" || call.function == "difference") {
    return call.arguments.size() == 2 && well_formed(first) && well_formed(call.arguments[1]);
  }
  const bool column = !first.empty() && first.find_first_of(" ()") == std::string::npos;
  return column && (call.function != "at" || (call.arguments.size() == 2 && !call.arguments[1].empty()));
}

/// Mean with the error that the members' own errors give it; none when any of them has none.
MeasuredNumber mean(const std::vector<MeasuredNumber>& values) {
  MeasuredNumber mean{0.0, 0.0};
  const auto n = static_cast<double>(values.size());
  double squares = 0.0;
  for (const MeasuredNumber& one : values) {
    mean.value += one.value;
    if (!one.standard_error) mean.standard_error.reset();
    squares += one.standard_error.value_or(0.0) * one.standard_error.value_or(0.0);
  }
  mean.value /= n;
  if (mean.standard_error) mean.standard_error = std::sqrt(squares) / n;
  return mean;
}

std::optional<MeasuredNumber> combined(const std::string& function, const MeasuredNumber& a, const MeasuredNumber& b) {
  const double ea = a.standard_error.value_or(0.0);
  const double eb = b.standard_error.value_or(0.0);
  MeasuredNumber result;
  double error = 0.0;
  if (function == "difference") {
    result.value = a.value - b.value;
    error = std::hypot(ea, eb);
  } else {
    if (b.value == 0.0) return std::nullopt;
    result.value = a.value / b.value;
    error = std::hypot(ea / b.value, result.value * eb / b.value);
  }
  if (a.standard_error || b.standard_error) result.standard_error = error;
  return result;
}

std::optional<MeasuredNumber> measure_text(const std::string& text, const std::string& members,
                                           const Quantities& quantities) {
  const Call call = parse(text);
  if (call.function.empty()) return quantities.find(text);
  if (call.function == "ratio" || call.function == "difference") {
    const auto a = measure_text(call.arguments.at(0), members, quantities);
    const auto b = measure_text(call.arguments.at(1), members, quantities);
    return a && b ? combined(call.function, *a, *b) : std::nullopt;
  }
  if (!quantities.column) return std::nullopt;
  const bool one = call.function == "at";
  const std::vector<MeasuredNumber> values =
      quantities.column(call.arguments.at(0), one ? call.arguments.at(1) : members);
  if (values.empty()) return std::nullopt;
  const auto less = [](const MeasuredNumber& a, const MeasuredNumber& b) { return a.value < b.value; };
  if (call.function == "min") return *std::min_element(values.begin(), values.end(), less);
  if (call.function == "max") return *std::max_element(values.begin(), values.end(), less);
  if (one) return values.size() == 1 ? std::optional(values.front()) : std::nullopt;
  return mean(values);
}

}  // namespace

void check_quantity(const Section& section, const Check& check) {
  if (!well_formed(check.quantity)) {
    section.fail("quantity", fmt::format("impossible value ({})", TomlText::quoted(check.quantity)),
                 std::string(grammar));
  }
}

std::optional<MeasuredNumber> measure(const Check& check, const Quantities& quantities) {
  return measure_text(check.quantity, check.members, quantities);
}

}  // namespace iclflow
