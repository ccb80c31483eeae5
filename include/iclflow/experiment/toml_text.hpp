#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// Writes TOML that reads back to the same bits: doubles by their shortest exact decimal, strings escaped.
class TomlText {
 public:
  void table(std::string_view name);    ///< [name]
  void element(std::string_view name);  ///< [[name]]
  void put(std::string_view key, std::string_view value);
  void put(std::string_view key, const char* value) { put(key, std::string_view(value)); }
  void put(std::string_view key, double value);
  void put(std::string_view key, std::int64_t value);
  void put(std::string_view key, int value) { put(key, static_cast<std::int64_t>(value)); }
  void put(std::string_view key, std::uint64_t value) { put(key, static_cast<std::int64_t>(value)); }
  void put(std::string_view key, bool value);
  void put(std::string_view key, const std::vector<double>& values);
  void put(std::string_view key, const std::vector<int>& values);
  void put(std::string_view key, const std::vector<std::uint64_t>& values);
  void put(std::string_view key, const std::vector<std::string>& values);
  void put(std::string_view key, const Matrix& rows);  ///< array of rows
  void raw(std::string_view key, std::string_view toml);

  [[nodiscard]] const std::string& text() const { return text_; }

  [[nodiscard]] static std::string number(double value);
  [[nodiscard]] static std::string quoted(std::string_view value);
  /// One number when all entries are equal, else an array of rows.
  [[nodiscard]] static std::string number_or_rows(const Matrix& rows);

 private:
  std::string text_;
};

}  // namespace iclflow
