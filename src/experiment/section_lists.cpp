#include <fmt/format.h>

#include "iclflow/experiment/section.hpp"
#include "section_messages.hpp"

namespace iclflow {

const std::vector<Value>& Section::list(std::string_view key, const std::string& allowed) const {
  const Value& value = require(key, allowed);
  if (value.kind != Value::Kind::array) fail(key, fmt::format("wrong type ({})", shown(value)), allowed);
  if (value.items.empty()) fail(key, "is an empty array", allowed);
  return value.items;
}

std::vector<double> Section::numbers(std::string_view key, Sign sign) const {
  std::vector<double> result;
  for (const Value& item : list(key, "an array; each " + allowed_numbers(sign))) {
    result.push_back(finite(item, fmt::format("{}[{}]", path(key), result.size()), sign));
  }
  return result;
}

std::vector<std::int64_t> Section::integers(std::string_view key, std::int64_t low, std::int64_t high,
                                            std::size_t largest_count) const {
  const std::string allowed = fmt::format("an array of 1 to {}; each {}", largest_count, allowed_integers(low, high));
  const auto& items = list(key, allowed);
  if (items.size() > largest_count) fail(key, fmt::format("has {} entries", items.size()), allowed);
  std::vector<std::int64_t> result;
  for (const Value& item : items) {
    result.push_back(whole(item, fmt::format("{}[{}]", path(key), result.size()), low, high));
  }
  return result;
}

std::vector<std::string> Section::texts(std::string_view key) const {
  std::vector<std::string> result;
  const Value* value = find(key);
  if (value != nullptr && value->kind == Value::Kind::array && value->items.empty()) return result;
  for (const Value& item : list(key, "an array of strings")) {
    if (item.kind != Value::Kind::text) {
      fail_at(item.line, fmt::format("{}[{}]", path(key), result.size()), fmt::format("wrong type ({})", shown(item)),
              "a string");
    }
    result.push_back(item.text);
  }
  return result;
}

Matrix Section::matrix(std::string_view key) const {
  const std::string allowed = "an array of rows, all of one length";
  const auto& rows = list(key, allowed);
  const std::size_t columns = rows.front().items.size();
  Matrix result(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(columns));
  for (std::size_t h = 0; h < rows.size(); ++h) {
    const std::string where = fmt::format("{}[{}]", path(key), h);
    if (rows[h].kind != Value::Kind::array) {
      fail_at(rows[h].line, where, fmt::format("wrong type ({})", shown(rows[h])), allowed);
    }
    if (rows[h].items.size() != columns || columns == 0) {
      fail_at(rows[h].line, where,
              fmt::format("ragged or empty ({} entries, row 0 has {})", rows[h].items.size(), columns), allowed);
    }
    for (std::size_t i = 0; i < columns; ++i) {
      result(static_cast<Eigen::Index>(h), static_cast<Eigen::Index>(i)) =
          finite(rows[h].items[i], fmt::format("{}[{}]", where, i), Sign::any);
    }
  }
  return result;
}

}  // namespace iclflow
