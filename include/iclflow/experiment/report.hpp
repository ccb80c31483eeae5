#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace iclflow {

struct ReportFigure {
  std::string kind;     ///< "loss", ...
  std::string caption;  ///< plain text, e.g. caption(LossFigure)
  std::string svg;      ///< the whole text of the .svg file; empty: the figure could not be drawn (see problem)
  std::string problem;  ///< why there is no figure, e.g. FigureError::what()
};

/// Everything the page says. Any text may hold anything: it is escaped.
struct Report {
  std::string title;
  /// summary.json. A part that it lacks is left out, so that systems with other tables than regression's can use the
  /// same page. Read beyond the design's keys, all optional: "system", "status" ("completed" | "interrupted" |
  /// "failed"), "expect": [{"key", "allowed", "value", "met"}], "claim", "checks" (experiment/check.hpp); per dynamics
  /// "status", "failure", "seeds", "allocation_ties", "double_winners", and "<name>_standard_error" beside a number or
  /// an object of numbers.
  nlohmann::ordered_json summary;
  std::string experiment;       ///< resolved experiment.toml
  std::string experiment_file;  ///< name for the command that reproduces the run, e.g. "experiment.toml"
  std::vector<std::pair<std::string, std::string>> versions;  ///< e.g. {"Eigen", "3.4.0"}; iclflow's own is in summary
  std::vector<ReportFigure> figures;
  std::string command = "run";                      ///< or "sweep": the subcommand that reproduces the page
  std::vector<std::vector<std::string>> members{};  ///< a sweep's table as plain text, headings first
};

/// One self-contained HTML page: inline style, inline SVG, no script, nothing fetched.
[[nodiscard]] std::string render_report(const Report& report);
/// Writes it under a temporary name and renames it when whole. Throws std::runtime_error naming the file.
void write_report(const std::filesystem::path& file, const Report& report);

/// "2.139(4)": a value with the standard error of its last digits (one digit, two if the first is 1); without an error
/// `digits` significant digits.
[[nodiscard]] std::string with_error(double value, double standard_error);
[[nodiscard]] std::string significant(double value, int digits = 5);

}  // namespace iclflow
