#include "report_sections.hpp"

namespace iclflow::page {

namespace {

std::string met_text(const Json& met) {
  if (!met.is_boolean()) return "not measured";
  return met.get<bool>() ? "met" : "<b>missed</b>";
}

}  // namespace

std::string claim_section(const Json& summary) {
  const Json& claim = at(summary, {"claim"});
  if (!claim.is_object()) return "";
  return "<p><b>Claim.</b> " + shown(at(claim, {"statement"})) + " <small>" + shown(at(claim, {"source"})) +
         "</small></p>\n";
}

std::string checks_section(const Json& summary) {
  const Json& checks = at(summary, {"checks"});
  if (!checks.is_array() || checks.empty()) return "";
  Table table("", {"check", "quantity", "measured", "predicted", "allowed for besides chance", "must be excluded", ""});
  for (const Json& check : checks) {
    const Json& tolerance = at(check, {"tolerance"});
    table.row({shown(at(check, {"statement"})), "<code>" + shown(at(check, {"quantity"})) + "</code>",
               estimate(at(check, {"measured"}), at(check, {"standard_error"})), shown(at(check, {"predicted"})),
               tolerance.is_number() ? shown(tolerance) : missing(), shown(at(check, {"rejected"})),
               met_text(at(check, {"met"}))});
  }
  return "<h2>Checks</h2>\n" + table.html();
}

std::string members_section(const Report& report) {
  if (report.members.size() < 2) return "";
  std::vector<std::string> headings;
  for (const std::string& text : report.members.front()) headings.push_back(escaped(text));
  Table table("", headings);
  for (std::size_t k = 1; k < report.members.size(); ++k) {
    std::vector<std::string> cells;
    for (const std::string& text : report.members[k]) cells.push_back(text.empty() ? missing() : escaped(text));
    table.row(cells);
  }
  const Json& count = at(report.summary, {"members", "count"});
  const std::size_t shown_rows = report.members.size() - 1;
  const std::string rest = count.is_number() && count.get<std::size_t>() > shown_rows
                               ? "The first " + std::to_string(shown_rows) + " of " + shown(count) + " members; "
                               : std::string();
  return "<h2>Members</h2>\n<p>" + rest + "every column of every member stands in table.csv and table.nc.</p>\n" +
         table.html();
}

}  // namespace iclflow::page
