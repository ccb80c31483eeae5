#include "iclflow/experiment/toml_text.hpp"

#include <fmt/format.h>

namespace iclflow {

namespace {

template <typename Range, typename Write>
std::string array(const Range& values, Write write) {
  std::string text = "[";
  for (const auto& value : values) text += (text.size() > 1 ? ", " : "") + write(value);
  return text + "]";
}

std::string rows_text(const Matrix& rows) {
  std::string text = "[";
  for (Eigen::Index h = 0; h < rows.rows(); ++h) {
    text += h > 0 ? ", [" : "[";
    for (Eigen::Index i = 0; i < rows.cols(); ++i) text += (i > 0 ? ", " : "") + TomlText::number(rows(h, i));
    text += "]";
  }
  return text + "]";
}

}  // namespace

std::string TomlText::number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string TomlText::quoted(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      text += fmt::format("\\u{:04X}", static_cast<unsigned>(byte));
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string TomlText::number_or_rows(const Matrix& rows) {
  const bool equal = rows.size() > 0 && (rows.array() == rows(0, 0)).all();
  return equal ? number(rows(0, 0)) : rows_text(rows);
}

void TomlText::table(std::string_view name) { text_ += fmt::format("\n[{}]\n", name); }
void TomlText::element(std::string_view name) { text_ += fmt::format("\n[[{}]]\n", name); }
void TomlText::raw(std::string_view key, std::string_view toml) { text_ += fmt::format("{} = {}\n", key, toml); }
void TomlText::put(std::string_view key, std::string_view value) { raw(key, quoted(value)); }
void TomlText::put(std::string_view key, double value) { raw(key, number(value)); }
void TomlText::put(std::string_view key, std::int64_t value) { raw(key, fmt::format("{}", value)); }
void TomlText::put(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
void TomlText::put(std::string_view key, const std::vector<double>& values) { raw(key, array(values, number)); }
void TomlText::put(std::string_view key, const std::vector<int>& values) {
  raw(key, array(values, [](int value) { return fmt::format("{}", value); }));
}
void TomlText::put(std::string_view key, const std::vector<std::uint64_t>& values) {
  raw(key, array(values, [](std::uint64_t value) { return fmt::format("{}", value); }));
}
void TomlText::put(std::string_view key, const std::vector<std::string>& values) { raw(key, array(values, quoted)); }
void TomlText::put(std::string_view key, const Matrix& rows) { raw(key, rows_text(rows)); }

}  // namespace iclflow
