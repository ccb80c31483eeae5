#include "report_sections.hpp"

namespace iclflow::page {

std::string closures_section(const Json& summary) {
  const Json& cells = at(summary, {"closures", "cells"});
  if (!cells.is_array() || cells.empty()) return "";
  std::vector<std::string> columns{"weights", "<i>d<sub>i</sub></i>", "<i>L</i>", "ℓ, tokens"};
  for (const Json& closure : at(cells.front(), {"closures"})) {
    columns.push_back("ℓ, " + shown(at(closure, {"closure"})));
    columns.emplace_back("<i>z</i>");
  }
  Table table("Population loss of given weights: closures against contexts drawn token by token", columns);
  for (const Json& cell : cells) {
    std::vector<std::string> row{shown(at(cell, {"weights"})), shown(at(cell, {"block_dimension"})),
                                 shown(at(cell, {"context_length"})),
                                 estimate(at(cell, {"tokens", "loss"}), at(cell, {"tokens", "standard_error"}))};
    for (const Json& closure : at(cell, {"closures"})) {
      row.push_back(estimate(at(closure, {"loss"}), at(closure, {"standard_error"}), "outside its domain"));
      row.push_back(shown(at(closure, {"z"})));
    }
    table.row(row);
  }
  const Json& sampled = at(summary, {"closures", "sampled"});
  return "<h2>Closures</h2>\n" + table.html() +
         "<p><i>z</i>: closure minus tokens over both standard errors. Sampled, " + shown(at(sampled, {"cells"})) +
         " cells: largest |<i>z</i>| " + shown(at(sampled, {"largest_z"})) + ", chi-square " +
         shown(at(sampled, {"chi_square"})) + ", probability of a larger one by chance " +
         shown(at(sampled, {"probability"})) + ".</p>\n";
}

}  // namespace iclflow::page
