#include "iclflow/experiment/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/document_edit.hpp"
#include "interruption.hpp"
#include "watched_run.hpp"

namespace iclflow::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string with_error(const Json& entry, const std::string& key) {
  const Json& value = entry.at(key);
  if (!value.is_number()) return "none";
  const Json error = entry.value(key + "_standard_error", Json(nullptr));
  const std::string text = fmt::format("{:.4g}", value.get<double>());
  return error.is_number() ? fmt::format("{} +- {:.1g}", text, error.get<double>()) : text;
}

/// The short version of summary.json for a reader.
void print_summary(const Json& summary) {
  for (const Json& dynamics : summary.value("dynamics", Json::array())) {
    std::cout << fmt::format("{}: final loss {} at t = {}", dynamics.at("name").get<std::string>(),
                             with_error(dynamics, "final_loss"), dynamics.at("final_time").dump());
    const Json& emergence = dynamics.at("phases").at("emergence_time");
    if (emergence.is_number()) std::cout << fmt::format(", emergence at {:.5g}", emergence.get<double>());
    std::cout << '\n';
  }
  for (const Json& pair : summary.value("comparison", Json::array())) {
    std::cout << fmt::format("{} against {}:", pair.at("simulation").get<std::string>(),
                             pair.at("theory").get<std::string>());
    for (const char* gap : {"loss_gap", "emergence_time_gap", "mu_gap", "omega_gap"}) {
      std::cout << fmt::format(" {} {}{}", gap, with_error(pair, gap),
                               std::string_view(gap) == "omega_gap" ? "\n" : ",");
    }
  }
}

bool expectations_met(const Json& summary) {
  const Json expectations = summary.value("expect", Json::array());
  return missed_checks(summary).empty() &&
         std::all_of(expectations.begin(), expectations.end(), [](const Json& e) { return e.value("met", false); });
}

/// Prints the run's summary (unless quiet) and whether its expectations are met.
bool conclude(const RunFolder& folder, bool quiet) {
  const Json summary = folder.summary();
  try {
    if (!quiet) {
      print_summary(summary);
      std::cout << folder.path().string() << '\n';
    }
    return expectations_met(summary);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{}: is not the summary of a run; allowed: the file as `run` wrote it",
                                 folder.summary_file().string()));
  }
}

Experiment read(const WatchedArguments& arguments) {
  Document document = read_document(arguments.file);
  if (arguments.theory) leave_simulations_out(document);
  Experiment experiment = make_experiment(document, systems());
  experiment.theory_only = arguments.theory;
  return experiment;
}

int run_file(const WatchedArguments& arguments) {
  catch_interruptions();
  const Experiment experiment = read(arguments);
  if (experiment.study->dynamics().empty() && !arguments.theory) {
    throw InputError(arguments.file + ":1: key 'dynamics': is missing; allowed: at least one [[dynamics]] table");
  }
  const std::filesystem::path out = arguments.folder();
  const RunFolder folder = RunFolder::create(out, experiment, arguments.resume);
  if (folder.whole()) {
    if (!arguments.quiet) std::cerr << "nothing is left to run\n";
    return conclude(folder, arguments.quiet) ? done : failed;
  }
  const auto bar = std::make_shared<ProgressBar>(!arguments.quiet);
  const RunStatus status = run(experiment, folder, {arguments.threads, arguments.checkpoint_seconds},
                               watch_with(bar, arguments.quiet, "time units"));
  bar->clear();
  std::error_code missing;
  if (!arguments.quiet && std::filesystem::exists(folder.summary_file(), missing)) conclude(folder, false);
  return exit_code(status);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "run an experiment into a folder of its own");
  auto arguments = std::make_shared<WatchedArguments>();
  add_watched_options(*command, *arguments, "threads; never changes a result",
                      "go on with an interrupted or killed run");
  command->callback([&action, arguments] { action = [arguments] { return run_file(*arguments); }; });
}

}  // namespace iclflow::cli
