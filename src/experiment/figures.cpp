#include "iclflow/experiment/figures.hpp"

#include <fmt/format.h>
#include <netcdf.h>

#include <Eigen/Core>
#include <algorithm>
#include <boost/version.hpp>

#include "iclflow/experiment/report.hpp"

namespace iclflow {

std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"compiler", __VERSION__},
          {"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
          {"Boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100)},
          {"NetCDF", std::string(nc_inq_libvers())},
          {"nlohmann/json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)}};
}

std::vector<std::string> write_figures_and_report(const Experiment& experiment, const RunFolder& folder,
                                                  const std::vector<DynamicsResult>& results,
                                                  const nlohmann::ordered_json& summary) {
  std::vector<std::string> problems;
  Report report{experiment.title,   summary, read_text(folder.experiment_file()), "experiment.toml",
                library_versions(), {}};
  const FigureRequest request{folder.figures(), experiment.title, experiment.figures};
  for (const DrawnFigure& figure : experiment.study->draw(results, summary, request)) {
    ReportFigure shown{figure.kind, figure.caption, {}, figure.problem};
    if (figure.problem.empty()) {
      shown.svg = read_text(folder.figures() / (figure.kind + ".svg"));
    } else if (std::find(problems.begin(), problems.end(), figure.problem) == problems.end()) {
      problems.push_back(figure.problem);
    }
    report.figures.push_back(std::move(shown));
  }
  write_report(folder.report_file(), report);
  return problems;
}

}  // namespace iclflow
