#include "iclflow/experiment/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trajectory/netcdf_memory.hpp"

namespace iclflow {

namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text.append(c == '"' ? 2 : 1, c);
  return text += '"';
}

}  // namespace

const TableColumn* Table::find(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const auto& one) { return one.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

std::string Table::cell(const TableColumn& column, std::size_t row) {
  if (column.text) return column.texts.at(row);
  const double number = column.numbers.at(row);
  return std::isnan(number) ? std::string() : fmt::format("{}", number);
}

std::string csv(const Table& table) {
  std::string text;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    if (k > 0) text += ',';
    text += quoted(table.columns[k].name);
  }
  text += "\r\n";
  for (std::size_t row = 0; row < table.rows; ++row) {
    for (std::size_t k = 0; k < table.columns.size(); ++k) {
      if (k > 0) text += ',';
      text += quoted(Table::cell(table.columns[k], row));
    }
    text += "\r\n";
  }
  return text;
}

void write_table_netcdf(const std::filesystem::path& file, const Table& table,
                        const std::map<std::string, std::string>& attributes) {
  write_netcdf_file(file, [&](netCDF::NcGroup& group) {
    for (const auto& [name, value] : attributes) group.putAtt(name, value);
    const netCDF::NcDim member = group.addDim("member", table.rows);
    for (const TableColumn& column : table.columns) {
      if (column.text) {
        add_strings(group, column.name, member, column.texts);
      } else {
        netCDF::NcVar variable = add_doubles(group, column.name, {member});
        variable.putAtt("units", "1");
        variable.putVar(column.numbers.data());
      }
    }
  });
}

}  // namespace iclflow
