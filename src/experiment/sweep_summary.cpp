#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "iclflow/experiment/figures.hpp"
#include "iclflow/experiment/report.hpp"
#include "iclflow/experiment/sweep_run.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_report_rows = 400;

/// Numbers of the members by status, and those that are not whole, one by one.
Json members_json(const Table& table) {
  Json members = {{"count", table.rows}, {"completed", 0}, {"not_completed", Json::array()}};
  std::size_t completed = 0;
  for (std::size_t k = 0; k < table.rows; ++k) {
    const std::string& status = table.columns[1].texts[k];
    if (status == "completed") {
      ++completed;
    } else {
      members["not_completed"].push_back(
          {{"member", table.columns[0].texts[k]}, {"status", status}, {"error", table.columns[2].texts[k]}});
    }
  }
  members["completed"] = completed;
  return members;
}

/// "scaling.NAME.Y[.GROUP].exponent" and its like.
std::optional<MeasuredNumber> find_fit(const Json& scalings, const std::string& path) {
  for (const Json& scaling : scalings) {
    for (const Json& series : scaling.at("series")) {
      std::string prefix =
          fmt::format("scaling.{}.{}.", scaling.at("name").get<std::string>(), series.at("y").get<std::string>());
      if (series.at("group").is_string()) prefix += series.at("group").get<std::string>() + ".";
      if (!path.starts_with(prefix)) continue;
      const auto found = series.find(path.substr(prefix.size()));
      if (found == series.end() || !found->is_number()) continue;
      const auto error = series.find(path.substr(prefix.size()) + "_standard_error");
      const bool known = error != series.end() && error->is_number();
      return MeasuredNumber{found->get<double>(), known ? std::optional(error->get<double>()) : std::nullopt};
    }
  }
  return std::nullopt;
}

std::vector<MeasuredNumber> measured_column(const Table& table, const std::string& column, const std::string& members) {
  std::vector<MeasuredNumber> values;
  const TableColumn* found = table.find(column);
  const TableColumn* error = table.find(column + "_standard_error");
  if (found == nullptr || found->text) return values;
  for (std::size_t k = 0; k < table.rows; ++k) {
    if (!matches(table.columns.front().texts[k], members) || !std::isfinite(found->numbers[k])) continue;
    const bool known = error != nullptr && std::isfinite(error->numbers[k]);
    values.push_back({found->numbers[k], known ? std::optional(error->numbers[k]) : std::nullopt});
  }
  return values;
}

/// Every column is too much for a page: the swept keys and what scalings and checks speak of.
std::vector<std::size_t> report_columns(const Sweep& sweep, const Table& table) {
  const auto wanted = [&](const std::string& name) {
    const auto in = [&](const std::string& text) { return text.find(name) != std::string::npos; };
    const auto fitted = [&](const Scaling& s) {
      return s.x == name || std::find(s.y.begin(), s.y.end(), name) != s.y.end();
    };
    return std::any_of(sweep.scalings().begin(), sweep.scalings().end(), fitted) ||
           std::any_of(sweep.checks().begin(), sweep.checks().end(), [&](const Check& c) { return in(c.quantity); });
  };
  const std::size_t given = 3 + sweep.keys().size();
  std::vector<std::size_t> columns;
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    const bool silent = k == 2 && std::all_of(table.columns[2].texts.begin(), table.columns[2].texts.end(),
                                              [](const std::string& error) { return error.empty(); });
    if ((k < given && !silent) || (k >= given && wanted(table.columns[k].name))) columns.push_back(k);
  }
  return columns;
}

/// The table as the page shows it, headings first; an error stands in brackets behind its value.
std::vector<std::vector<std::string>> report_rows(const Sweep& sweep, const Table& table) {
  std::vector<std::vector<std::string>> rows(1);
  const std::vector<std::size_t> columns = report_columns(sweep, table);
  for (const std::size_t k : columns) rows.front().push_back(table.columns[k].name);
  for (std::size_t row = 0; row < std::min(table.rows, most_report_rows); ++row) {
    rows.emplace_back();
    for (const std::size_t k : columns) {
      const TableColumn& column = table.columns[k];
      const TableColumn* error = table.find(column.name + "_standard_error");
      if (column.text || std::isnan(column.numbers[row])) {
        rows.back().push_back(Table::cell(column, row));
      } else if (error != nullptr && error->numbers[row] > 0.0) {
        rows.back().push_back(with_error(column.numbers[row], error->numbers[row]));
      } else {
        rows.back().push_back(significant(column.numbers[row]));
      }
    }
  }
  return rows;
}

/// Draws the scalings into figures/ and keeps each for the page.
std::vector<ReportFigure> draw_scalings(const std::vector<FittedScaling>& scalings, const SweepFolder& folder,
                                        const Watch& watch) {
  std::vector<ReportFigure> figures;
  for (const FittedScaling& scaling : scalings) {
    const auto name = scaling.json.at("name").get<std::string>();
    ReportFigure figure{name, caption(scaling.figure), {}, {}};
    try {
      draw(scaling.figure, {folder.path() / "figures", name});
      figure.svg = read_text(folder.path() / "figures" / (name + ".svg"));
    } catch (const FigureError& error) {
      figure.problem = error.what();
      if (watch.problem) watch.problem(error.what());
    }
    figures.push_back(std::move(figure));
  }
  return figures;
}

Json sweep_summary(const Sweep& sweep, const Table& table, const std::vector<FittedScaling>& scalings) {
  Json summary = {{"version", version()}, {"title", sweep.title()}};
  const Json members = members_json(table);
  summary["status"] = members.at("not_completed").empty() ? "completed" : "failed";
  summary["members"] = members;
  if (sweep.claim()) {
    summary["claim"] = {{"statement", sweep.claim()->statement}, {"source", sweep.claim()->source}};
  }
  summary["scaling"] = Json::array();
  for (const FittedScaling& scaling : scalings) summary["scaling"].push_back(scaling.json);
  Quantities quantities;
  quantities.find = [&](const std::string& path) { return find_fit(summary.at("scaling"), path); };
  quantities.column = [&](const std::string& column, const std::string& glob) {
    return measured_column(table, column, glob);
  };
  const Json checks = check_all(sweep.checks(), quantities, sweep.theory_only());
  summary["checks"] = checks;
  return summary;
}

}  // namespace

RunStatus finish_sweep(const Sweep& sweep, const SweepFolder& folder, const Watch& watch) {
  const Table table = read_table(sweep, folder);
  const std::string text = read_text(folder.sweep_file());
  write_whole(folder.path() / "table.csv", csv(table));
  write_table_netcdf(folder.path() / "table.nc", table,
                     {{"title", sweep.title()}, {"version", std::string(version())}, {"sweep", text}});
  std::vector<FittedScaling> scalings;
  for (const Scaling& scaling : sweep.scalings()) scalings.push_back(fit_scaling(scaling, table, sweep.title()));
  const Json summary = sweep_summary(sweep, table, scalings);
  write_whole(folder.summary_file(), summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  Report report{sweep.title(), summary, text, "sweep.toml", library_versions(), draw_scalings(scalings, folder, watch)};
  report.command = "sweep";
  report.members = report_rows(sweep, table);
  write_report(folder.path() / "report.html", report);
  const std::vector<std::string> missed = missed_checks(summary);
  for (const std::string& sentence : missed) {
    if (watch.problem) watch.problem(sentence);
  }
  if (summary.at("status") != "completed") return RunStatus::failed;
  return missed.empty() ? RunStatus::completed : RunStatus::expectation_missed;
}

}  // namespace iclflow
