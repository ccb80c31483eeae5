#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace iclflow::page {

using Json = nlohmann::ordered_json;

/// Text for HTML: markup characters become entities, broken UTF-8 and control characters become U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// The value at a path of keys; null when any of them is missing.
[[nodiscard]] const Json& at(const Json& json, const std::vector<std::string>& keys);
/// Any JSON value as escaped text: numbers with five digits, arrays with commas, null as an en dash.
[[nodiscard]] std::string shown(const Json& value);
/// A number with the error that stands beside it; null as an en dash with the reason, escaped.
[[nodiscard]] std::string estimate(const Json& value, const Json& standard_error, std::string_view reason = "");
[[nodiscard]] std::string missing(std::string_view reason = "");

/// A table whose cells are HTML already.
class Table {
 public:
  Table(std::string caption, std::vector<std::string> columns);
  void row(const std::vector<std::string>& cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Nothing when there is no row. The first column holds row headings.
  [[nodiscard]] std::string html() const;

 private:
  std::string caption_;
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace iclflow::page
