#include "page.hpp"

#include "iclflow/experiment/report.hpp"
#include "plots/utf8.hpp"

namespace iclflow::page {
namespace {

void append_escaped(char c, std::string& result) {
  switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    case '\'':
      result += "&#39;";
      break;
    default: {
      const bool blank = c == '\n' || c == '\t' || c == '\r';
      const bool control = (static_cast<unsigned char>(c) < 0x20 && !blank) || c == 0x7F;
      result += control ? std::string("\xEF\xBF\xBD") : std::string(1, c);
    }
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = plots::sequence_length(text);
    if (length == 0) {
      result += "\xEF\xBF\xBD";
    } else if (length == 1) {
      append_escaped(text[0], result);
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

const Json& at(const Json& json, const std::vector<std::string>& keys) {
  static const Json nothing = nullptr;
  const Json* value = &json;
  for (const std::string& key : keys) {
    if (!value->is_object()) return nothing;
    const auto found = value->find(key);
    if (found == value->end()) return nothing;
    value = &*found;
  }
  return *value;
}

std::string missing(std::string_view reason) {
  if (reason.empty()) return "–";
  return "– <small>" + escaped(reason) + "</small>";
}

std::string shown(const Json& value) {
  if (value.is_null()) return missing();
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) return significant(value.get<double>());
  if (value.is_string()) return escaped(value.get_ref<const std::string&>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  std::string text;
  for (const auto& [key, entry] : value.items()) {
    text += (text.empty() ? "" : ", ") + (value.is_object() ? escaped(key) + " " : std::string()) + shown(entry);
  }
  return text;
}

std::string estimate(const Json& value, const Json& standard_error, std::string_view reason) {
  if (!value.is_number()) return missing(reason);
  if (!standard_error.is_number()) return significant(value.get<double>());
  return with_error(value.get<double>(), standard_error.get<double>());
}

Table::Table(std::string caption, std::vector<std::string> columns)
    : caption_(std::move(caption)), columns_(std::move(columns)) {}

void Table::row(const std::vector<std::string>& cells) { rows_.push_back(cells); }

std::string Table::html() const {
  if (rows_.empty()) return "";
  std::string text = "<div class=\"table\"><table>\n";
  if (!caption_.empty()) text += "<caption>" + caption_ + "</caption>\n";
  if (!columns_.empty()) {
    text += "<thead><tr>";
    for (const std::string& column : columns_) text += "<th scope=\"col\">" + column + "</th>";
    text += "</tr></thead>\n";
  }
  text += "<tbody>\n";
  for (const auto& row : rows_) {
    text += "<tr>";
    for (std::size_t k = 0; k < row.size(); ++k) {
      text += k == 0 ? "<th scope=\"row\">" + row[k] + "</th>" : "<td>" + row[k] + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace iclflow::page
