#include <algorithm>
#include <cmath>

#include "report_sections.hpp"

namespace iclflow::page {
namespace {

const Json& error_of(const Json& json, const std::string& key) { return at(json, {key + "_standard_error"}); }

std::string timed(const Json& dynamics, const std::string& phase) {
  const Json& phases = at(dynamics, {"phases"});
  return estimate(at(phases, {phase}), error_of(phases, phase), "not reached");
}

std::string model(const Json& dynamics) {
  const Json& closure = at(dynamics, {"closure"});
  return shown(at(dynamics, {"kind"})) + ", " + shown(closure.is_null() ? at(dynamics, {"estimator"}) : closure);
}

std::string seed_count(const Json& dynamics) {
  const Json& seeds = at(dynamics, {"seeds"});
  return seeds.is_array() && !seeds.empty() ? std::to_string(seeds.size()) : missing();
}

// What the allocation row cannot say: heads that share a task, heads that took several.
std::string allocation_notes(const Json& dynamics) {
  std::string notes;
  const Json& ties = at(dynamics, {"allocation_ties"});
  for (std::size_t task = 0; ties.is_array() && task < ties.size(); ++task) {
    if (ties[task].empty()) continue;
    notes += " Heads " + shown(ties[task]) + " tie on task " + std::to_string(task) + ".";
  }
  for (const Json& double_winner : at(dynamics, {"double_winners"})) {
    notes += " Head " + shown(at(double_winner, {"head"})) + " wins tasks " + shown(at(double_winner, {"tasks"})) + ".";
  }
  if (notes.empty()) return "";
  return "<p><i>" + shown(at(dynamics, {"name"})) + "</i>:" + notes + "</p>\n";
}

// Values that are shown (and printed) without unfolding them.
constexpr std::size_t most_open = 32;

struct GapColumn {
  const char* key;
  const char* heading;
  const char* reason;
};

constexpr GapColumn gap_columns[] = {{"loss_gap", "loss, mean", ""},
                                     {"loss_gap_max", "loss, largest", ""},
                                     {"emergence_time_gap", "emergence time", "not reached"},
                                     {"mu_gap", "<i>μ</i>", ""},
                                     {"omega_gap", "<i>ω</i>", ""},
                                     {"product_gap", "<i>ab</i>", ""},
                                     {"mode_gap", "<i>M</i>", ""}};

// Columns that at least one pair of this system has.
std::vector<GapColumn> gap_columns_of(const Json& pairs) {
  std::vector<GapColumn> columns;
  for (const GapColumn& column : gap_columns) {
    const auto has = [&](const Json& pair) { return pair.contains(column.key); };
    if (std::any_of(pairs.begin(), pairs.end(), has)) columns.push_back(column);
  }
  return columns;
}

Json percent(const Json& share) { return share.is_number() ? Json(100.0 * share.get<double>()) : Json(nullptr); }

// final_mu or final_omega of head h, task i; null where there is none.
const Json& entry(const Json& dynamics, const std::string& key, std::size_t head, std::size_t task) {
  static const Json nothing = nullptr;
  const Json& rows = at(dynamics, {key});
  if (!rows.is_array() || head >= rows.size() || !rows[head].is_array() || task >= rows[head].size()) return nothing;
  return rows[head][task];
}

std::string final_entry(const Json& dynamics, const std::string& key, std::size_t head, std::size_t task) {
  return estimate(entry(dynamics, key, head, task), entry(dynamics, key + "_standard_error", head, task));
}

std::string winners_table(const Json& summary, const std::string& key, const std::string& symbol) {
  const Json& predicted = at(summary, {"prediction", "dedicated", key});
  std::vector<std::string> columns{"task", "predicted"};
  std::size_t tasks = predicted.is_array() ? predicted.size() : 0;
  for (const Json& dynamics : at(summary, {"dynamics"})) {
    columns.push_back(shown(at(dynamics, {"name"})));
    tasks = std::max(tasks, at(dynamics, {"allocation"}).size());
  }
  Table table("Final " + symbol + " of each task's winning head (in brackets: the head) against the dedicated limit",
              columns);
  for (std::size_t task = 0; task < tasks; ++task) {
    std::vector<std::string> row{std::to_string(task), predicted.is_array() && task < predicted.size()
                                                           ? estimate(predicted[task], nullptr)
                                                           : missing("fewer heads than tasks")};
    for (const Json& dynamics : at(summary, {"dynamics"})) {
      const Json& allocation = at(dynamics, {"allocation"});
      const bool won = allocation.is_array() && task < allocation.size() && allocation[task].is_number_integer();
      row.push_back(won ? final_entry(dynamics, "final_" + key, allocation[task].get<std::size_t>(), task) + " [" +
                              shown(allocation[task]) + "]"
                        : missing("nothing learned"));
    }
    table.row(row);
  }
  return table.html();
}

std::string all_values(const Json& dynamics, const std::string& key, const std::string& symbol) {
  const Json& rows = at(dynamics, {"final_" + key});
  if (!rows.is_array() || rows.empty()) return "";
  std::vector<std::string> columns{"head"};
  for (std::size_t task = 0; task < rows[0].size(); ++task) columns.push_back("task " + std::to_string(task));
  Table table(shown(at(dynamics, {"name"})) + ": final " + symbol, columns);
  for (std::size_t head = 0; head < rows.size(); ++head) {
    std::vector<std::string> row{std::to_string(head)};
    for (std::size_t task = 0; task < rows[head].size(); ++task) {
      row.push_back(final_entry(dynamics, "final_" + key, head, task));
    }
    table.row(row);
  }
  return table.html();
}

}  // namespace

std::string dynamics_section(const Json& summary) {
  Table table(
      "Losses with the standard error of the seeds' mean in the last digits; times of the flow d<i>θ</i>/d<i>t</i> = "
      "−∇ℓ",
      {"name", "kind", "seeds", "final <i>t</i>", "final ℓ", "<i>t</i><sub>w</sub>", "<i>t</i><sub>0</sub>",
       "<i>t</i><sub>e</sub>", "head of task 0, 1, …", "evaluations", "wall time (s)"});
  std::string notes;
  for (const Json& dynamics : at(summary, {"dynamics"})) {
    const Json& status = at(dynamics, {"status"});
    const std::string stopped =
        status.is_string() && status != "completed" ? " <small>(" + shown(status) + ")</small>" : "";
    const Json& allocation = at(dynamics, {"allocation"});
    table.row({shown(at(dynamics, {"name"})) + stopped, model(dynamics), seed_count(dynamics),
               estimate(at(dynamics, {"final_time"}), nullptr, "no sample"),
               estimate(at(dynamics, {"final_loss"}), error_of(dynamics, "final_loss"), "no sample"),
               timed(dynamics, "warm_up_end"), timed(dynamics, "emergence_time"), timed(dynamics, "emergence_end"),
               allocation.is_array() && !allocation.empty() ? shown(allocation) : missing(),
               shown(at(dynamics, {"evaluations"})),
               at(dynamics, {"wall_seconds"}).is_number() ? significant(at(dynamics, {"wall_seconds"}).get<double>(), 3)
                                                          : missing()});
    notes += allocation_notes(dynamics);
  }
  if (table.empty()) return "";
  return "<h2>Dynamics</h2>\n" + table.html() +
         "<p><i>t</i><sub>w</sub>, <i>t</i><sub>0</sub>, <i>t</i><sub>e</sub>: 5, 50, 95 % of ℓ(0) − ℓ(end) are gone, "
         "ℓ(end) being the theory's at the final time.</p>\n" +
         notes;
}

std::string final_values_section(const Json& summary) {
  std::string details;
  std::size_t entries = 0;
  for (const Json& dynamics : at(summary, {"dynamics"})) {
    const Json& mu = at(dynamics, {"final_mu"});
    if (mu.is_array() && !mu.empty()) entries += mu.size() * mu[0].size();
    details += all_values(dynamics, "mu", "<i>μ</i>") + all_values(dynamics, "omega", "<i>ω</i> (block mean)");
  }
  if (details.empty()) return "";
  return "<h2>Final values against prediction</h2>\n" + winners_table(summary, "mu", "<i>μ</i>") +
         winners_table(summary, "omega", "<i>ω</i> (block mean)") +
         (entries <= most_open ? "<details open>" : "<details>") + "<summary>All heads and tasks</summary>\n" +
         details + "</details>\n";
}

std::string comparison_section(const Json& summary) {
  const std::vector<GapColumn> gaps = gap_columns_of(at(summary, {"comparison"}));
  std::vector<std::string> columns{"theory", "simulation"};
  for (const GapColumn& column : gaps) columns.push_back(std::string(column.heading) + " (%)");
  Table table("Gaps in percent, with the seeds' standard error in the last digits", columns);
  for (const Json& pair : at(summary, {"comparison"})) {
    std::vector<std::string> row{shown(at(pair, {"theory"})), shown(at(pair, {"simulation"}))};
    for (const GapColumn& column : gaps) {
      row.push_back(estimate(percent(at(pair, {column.key})), percent(error_of(pair, column.key)), column.reason));
    }
    table.row(row);
  }
  if (table.empty()) return "";
  return "<h2>Theory against simulation</h2>\n" + table.html() +
         "<p>Loss: |ℓ<sub>sim</sub> − ℓ<sub>theory</sub>| / ℓ<sub>theory</sub>(0), over time. Emergence time: relative "
         "difference of <i>t</i><sub>0</sub>. All others: mean over time of the largest entry's difference, "
         "over "
         "the theory's largest final entry.</p>\n";
}

std::string leakage_section(const Json& summary) {
  Table table("Root sum of squares over heads at the end, seeds' mean, in the <i>Φ</i>, <i>Ψ</i> basis",
              {"simulation", "key-query: off-diagonal <i>XX</i>", "cross: <i>YX</i>",
               "output-value: off-diagonal <i>U<sub>Y</sub></i>", "value from covariates: <i>U<sub>X</sub></i>"});
  for (const Json& dynamics : at(summary, {"dynamics"})) {
    const Json& leakage = at(dynamics, {"leakage"});
    if (!leakage.is_object()) continue;
    std::vector<std::string> row{shown(at(dynamics, {"name"}))};
    for (const char* part : {"key_query", "cross", "output_value", "value_x"}) {
      row.push_back(estimate(at(leakage, {part}), at(dynamics, {"leakage_standard_error", part})));
    }
    table.row(row);
  }
  if (table.empty()) return "";
  return "<h2>Leakage out of the decomposable manifold</h2>\n" + table.html() +
         "<p>The reduction says that these weights stay zero; a finite batch makes them fluctuate by an amount that "
         "falls as batch<sup>−1/2</sup>.</p>\n";
}

}  // namespace iclflow::page
