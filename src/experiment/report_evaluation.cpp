#include <algorithm>
#include <cstdint>
#include <map>

#include "report_sections.hpp"

namespace iclflow::page {
namespace {

constexpr std::size_t most_open = 128;  // numbers that are shown without unfolding them
constexpr std::size_t most_rows = 64;   // lengths of a table; of more, every second, third, ...

std::string law_of(const Json& row) {
  const Json& shift = at(row, {"shift"});
  return shift.is_string() ? shift.get<std::string>() : "";
}

std::string estimator_of(const Json& row) {
  const Json& name = at(row, {"estimator"});
  return name.is_string() ? name.get<std::string>() : "";
}

/// Rows of one law: by length, then by estimator.
struct Law {
  std::vector<std::string> estimators;  ///< in their order
  std::map<std::int64_t, std::map<std::string, const Json*>> rows;
};

Law read_law(const Json& rows, const std::string& name) {
  Law law;
  for (const Json& row : rows) {
    const Json& length = at(row, {"context_length"});
    if (law_of(row) != name || !length.is_number_integer()) continue;
    auto& estimators = law.rows[length.get<std::int64_t>()];
    if (law.rows.size() == 1) law.estimators.push_back(estimator_of(row));
    estimators[estimator_of(row)] = &row;
  }
  return law;
}

std::string cell(const Json& row) {
  const std::string text = estimate(at(row, {"loss"}), at(row, {"standard_error"}), "no mean");
  const Json& prediction = at(row, {"prediction"});
  return prediction.is_number() ? text + "<br><small>" + shown(prediction) + "</small>" : text;
}

std::string law_table(const Json& rows, const std::string& name) {
  const Law law = read_law(rows, name);
  std::vector<std::string> columns{"<i>L</i>"};
  for (const std::string& estimator : law.estimators) columns.push_back(escaped(estimator));
  Table table(name.empty() ? "The training law; small: the prediction" : "Law: " + escaped(name), columns);
  const std::size_t stride = law.rows.size() / most_rows + 1;
  std::size_t count = 0;
  for (const auto& [length, estimators] : law.rows) {
    if (count++ % stride != 0) continue;
    std::vector<std::string> cells{std::to_string(length)};
    for (const std::string& estimator : law.estimators) {
      const auto found = estimators.find(estimator);
      cells.push_back(found == estimators.end() ? missing() : cell(*found->second));
    }
    table.row(cells);
  }
  return table.html();
}

}  // namespace

std::string evaluation_section(const Json& summary) {
  const Json& rows = at(summary, {"evaluation"});
  if (!rows.is_array() || rows.empty()) return "";
  std::vector<std::string> laws;
  for (const Json& row : rows) {
    if (std::find(laws.begin(), laws.end(), law_of(row)) == laws.end()) laws.push_back(law_of(row));
  }
  std::string tables;
  for (const std::string& law : laws) tables += law_table(rows, law);
  const bool open = laws.size() == 1 && rows.size() <= most_open;
  return "<h2>Fresh contexts of several lengths</h2>\n<p>Loss ℓ of the final weights and of classical estimators, "
         "which "
         "know the training law. All entries of one length and law see the same covariates. With several seeds the "
         "error joins that of the seeds and that of the contexts.</p>\n" +
         std::string(open ? "<details open>" : "<details>") + "<summary>Losses by context length</summary>\n" + tables +
         "</details>\n";
}

}  // namespace iclflow::page
