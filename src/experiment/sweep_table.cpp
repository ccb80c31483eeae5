#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <unordered_map>

#include "iclflow/experiment/document_edit.hpp"
#include "iclflow/experiment/flat_summary.hpp"
#include "iclflow/experiment/json_file.hpp"
#include "iclflow/experiment/sweep_run.hpp"

namespace iclflow {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

/// What a member left behind.
struct Row {
  std::string status;
  std::string error;
  FlatSummary numbers;
};

std::string failure_in(const Json& summary) {
  if (summary.contains("failure")) return summary.at("failure").get<std::string>();
  std::string text;
  for (const Json& dynamics : summary.value("dynamics", Json::array())) {
    if (!dynamics.contains("failure")) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", dynamics.value("name", ""),
                        dynamics.at("failure").get<std::string>());
  }
  return text;
}

std::string missed_in(const Json& summary) {
  std::string text;
  for (const Json& one : summary.value("expect", Json::array())) {
    if (one.value("met", false)) continue;
    text += fmt::format("{}expected {} of at most {}, got {}", text.empty() ? "" : "; ", one.value("key", ""),
                        one.at("allowed").dump(), one.at("value").dump());
  }
  return text;
}

Row read_row(const fs::path& folder) {
  const fs::path file = folder / "summary.json";
  std::error_code error;
  if (!fs::exists(file, error)) return {"missing", "", {}};
  try {
    const Json summary = Json::parse(read_text(file));
    Row row{summary.value("status", "failed"), failure_in(summary), {}};
    if (row.status != "completed") return row;
    row.numbers = flatten(summary);
    row.error = missed_in(summary);
    if (!row.error.empty()) row.status = "expectation missed";
    return row;
  } catch (const nlohmann::json::exception&) {
    return {"failed", file.string() + ": is damaged", {}};
  } catch (const InputError& failure) {
    return {"failed", failure.what(), {}};
  }
}

TableColumn texts(std::string name) { return {std::move(name), true, {}, {}}; }

double number_of(const Value& value) {
  return value.kind == Value::Kind::integer ? static_cast<double>(value.integer) : value.real;
}

/// A swept key's values: numbers when all of them are, else as TOML.
TableColumn swept(const Sweep& sweep, std::size_t key) {
  const SweptKey& own = sweep.keys()[key];
  const bool numeric = std::all_of(own.values.begin(), own.values.end(), [](const Value& value) {
    return value.kind == Value::Kind::integer || value.kind == Value::Kind::real;
  });
  TableColumn column{own.path, !numeric, {}, {}};
  for (std::size_t k = 0; k < sweep.size(); ++k) {
    const Value& value = sweep.value(k, key);
    if (numeric) {
      column.numbers.push_back(number_of(value));
    } else {
      column.texts.push_back(value.kind == Value::Kind::text ? value.text : toml(value));
    }
  }
  return column;
}

}  // namespace

Table read_table(const Sweep& sweep, const SweepFolder& folder) {
  constexpr std::size_t given = std::numeric_limits<std::size_t>::max();  // a swept key is not read again
  Table table;
  table.rows = sweep.size();
  table.columns = {texts("member"), texts("status"), texts("error")};
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t key = 0; key < sweep.keys().size(); ++key) {
    table.columns.push_back(swept(sweep, key));
    place[sweep.keys()[key].path] = given;
  }
  for (std::size_t k = 0; k < sweep.size(); ++k) {
    Row row = read_row(folder.member(sweep.name(k)));
    table.columns[0].texts.push_back(sweep.name(k));
    table.columns[1].texts.push_back(std::move(row.status));
    table.columns[2].texts.push_back(std::move(row.error));
    for (const auto& [name, value] : row.numbers) {
      const auto [found, fresh] = place.try_emplace(name, table.columns.size());
      if (found->second == given) continue;
      if (fresh) {
        table.columns.push_back({name, false, {}, {}});
        table.columns.back().numbers.assign(table.rows, std::numeric_limits<double>::quiet_NaN());
      }
      table.columns[found->second].numbers[k] = value;
    }
  }
  return table;
}

}  // namespace iclflow
