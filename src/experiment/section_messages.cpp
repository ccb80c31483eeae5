#include "section_messages.hpp"

#include <fmt/format.h>

namespace iclflow {

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::boolean:
      return value.flag ? "true" : "false";
    case Value::Kind::integer:
      return fmt::format("{}", value.integer);
    case Value::Kind::real:
      return fmt::format("{}", value.real);
    case Value::Kind::text:
      return fmt::format("\"{}\"", value.text.size() > 60 ? value.text.substr(0, 57) + "..." : value.text);
    case Value::Kind::date:
      return "a date or time";
    case Value::Kind::array:
      return fmt::format("an array of {}", value.items.size());
    case Value::Kind::table:
      return "a table";
  }
  return {};
}

std::string allowed_numbers(Sign sign) {
  if (sign == Sign::positive) return "a finite number above 0";
  return sign == Sign::non_negative ? "a finite number of at least 0" : "a finite number";
}

std::string allowed_integers(std::int64_t low, std::int64_t high) {
  return fmt::format("an integer from {} to {}", low, high);
}

std::string in_quotes(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  return text;
}

std::string listed(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

}  // namespace iclflow
