#include <iostream>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/figures.hpp"

namespace iclflow::cli {

namespace {

int report(const std::string& path) {
  const RunFolder folder = RunFolder::open(path);
  const Experiment experiment = read_experiment(folder.experiment_file(), systems());
  const auto summary = folder.summary();
  const auto problems = write_figures_and_report(experiment, folder, read_trajectory(folder), summary);
  for (const std::string& problem : problems) std::cerr << "iclflow: " << one_line(problem) << '\n';
  std::cout << folder.report_file().string() << '\n';
  return problems.empty() ? done : failed;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("report", "draw the figures and write report.html of a run again");
  auto path = std::make_shared<std::string>();
  command->add_option("RUN", *path, "run folder")->required();
  command->callback([&action, path] { action = [path] { return report(*path); }; });
}

}  // namespace iclflow::cli
