#include "iclflow/experiment/claims_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "iclflow/experiment/document.hpp"
#include "iclflow/experiment/report.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

/// Text for one cell: no bars, no line breaks.
std::string cell(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '|') plain += '\\';
    plain += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return plain.empty() ? "–" : plain;
}

std::string number(const Json& value) {
  if (value.is_number()) return significant(value.get<double>(), 6);
  return value.is_string() ? value.get<std::string>() : "–";
}

std::string error_text(const Json& value) { return value.is_number() ? significant(value.get<double>(), 2) : "–"; }

/// "−0.5, not −1 or −0.25"
std::string prediction(const Json& check) {
  std::string text = number(check.at("predicted"));
  const char* joint = ", not ";
  for (const Json& wrong : check.at("rejected")) {
    text += fmt::format("{}{}", joint, number(wrong));
    joint = " or ";
  }
  return text;
}

class Rows {
 public:
  void add(const std::filesystem::path& folder) {
    // "runs/a/" is the folder a, too
    const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    try {
      add_summary(name, Json::parse(read_text(folder / "summary.json")));
    } catch (const nlohmann::json::exception&) {
      add_broken(name, "", "", "summary.json is damaged");
    } catch (const InputError&) {
      add_broken(name, "", "", "did not finish");
    }
  }
  [[nodiscard]] ClaimsTable take() { return std::move(table_); }

 private:
  void add_row(const std::vector<std::string>& cells) {
    for (const std::string& text : cells) table_.markdown += fmt::format("| {} ", cell(text));
    table_.markdown += "|\n";
  }

  void add_broken(const std::string& name, const std::string& statement, const std::string& source,
                  const std::string& verdict) {
    ++table_.missed;
    add_row({statement, source, name, "", "", "", "", fmt::format("**{}**", verdict)});
  }

  void add_summary(const std::string& name, const Json& summary) {
    const Json claim = summary.value("claim", Json::object());
    const std::string statement = claim.value("statement", summary.value("title", ""));
    const std::string source = claim.value("source", "");
    const Json checks = summary.value("checks", Json::array());
    if (summary.value("status", "") != "completed") {
      add_broken(name, statement, source, fmt::format("run {}", summary.value("status", "failed")));
    } else if (checks.empty()) {
      add_broken(name, statement, source, "states no check");
    }
    for (const Json& check : checks) add_check(name, statement, source, check);
  }

  void add_check(const std::string& name, const std::string& statement, const std::string& source, const Json& check) {
    const Json& met = check.at("met");
    std::string verdict = "not measured";
    if (met.is_boolean()) verdict = met.get<bool>() ? "shown" : "**missed**";
    ++(met.is_boolean() ? (met.get<bool>() ? table_.met : table_.missed) : table_.not_measured);
    add_row({statement, source, name, check.at("statement").get<std::string>(), number(check.at("measured")),
             error_text(check.at("standard_error")), prediction(check), verdict});
  }

  ClaimsTable table_{
      "| claim | source | experiment | check | measured | standard error | predicted | verdict |\n"
      "|---|---|---|---|---|---|---|---|\n"};
};

}  // namespace

ClaimsTable claims_table(const std::vector<std::filesystem::path>& folders) {
  Rows rows;
  for (const std::filesystem::path& folder : folders) rows.add(folder);
  return rows.take();
}

}  // namespace iclflow
