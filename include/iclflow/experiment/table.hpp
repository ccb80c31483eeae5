#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace iclflow {

/// One column: texts or numbers, one per row; missing is empty or NaN.
struct TableColumn {
  std::string name;
  bool text = false;
  std::vector<std::string> texts{};
  std::vector<double> numbers{};
};

/// A tidy table, one row per member of a sweep.
struct Table {
  std::vector<TableColumn> columns;
  std::size_t rows = 0;

  [[nodiscard]] const TableColumn* find(std::string_view name) const;
  /// A cell as text: numbers with every digit, missing ones empty.
  [[nodiscard]] static std::string cell(const TableColumn& column, std::size_t row);
};

/// RFC 4180: lines end in CRLF, cells with commas, quotes or line breaks are quoted.
[[nodiscard]] std::string csv(const Table& table);
/// One variable per column over the dimension `member`; texts are strings. Throws std::runtime_error naming the file.
void write_table_netcdf(const std::filesystem::path& file, const Table& table,
                        const std::map<std::string, std::string>& attributes);

}  // namespace iclflow
