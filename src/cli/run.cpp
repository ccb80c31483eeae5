#include "iclflow/experiment/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "commands.hpp"
#include "iclflow/experiment/document_edit.hpp"
#include "interruption.hpp"
#include "progress_bar.hpp"

namespace iclflow::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string file;
  std::string out;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 1024U));
  double checkpoint_seconds = 10.0;
  bool resume = false;
  bool quiet = false;
  bool theory = false;
};

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

Watch watch_with(const std::shared_ptr<ProgressBar>& bar, bool quiet) {
  Watch watch;
  watch.interrupted = was_interrupted;
  watch.progress = [bar](const std::string& label, double fraction, double time) { bar->show(label, fraction, time); };
  if (!quiet) {
    watch.message = [bar](const std::string& text) {
      bar->clear();
      std::cerr << one_line(text) << '\n';
    };
  }
  watch.problem = [bar](const std::string& text) {
    bar->clear();
    std::cerr << "iclflow: " << one_line(text) << '\n';
  };
  return watch;
}

int exit_code(RunStatus status) {
  if (status == RunStatus::interrupted) return interrupted;
  return status == RunStatus::completed ? done : failed;
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

Experiment read(const Arguments& arguments) {
  Document document = read_document(arguments.file);
  if (arguments.theory) leave_simulations_out(document);
  Experiment experiment = make_experiment(document, systems());
  experiment.theory_only = arguments.theory;
  return experiment;
}

int run_file(const Arguments& arguments) {
  catch_interruptions();
  const Experiment experiment = read(arguments);
  if (experiment.study->dynamics().empty() && !arguments.theory) {
    throw InputError(arguments.file + ":1: key 'dynamics': is missing; allowed: at least one [[dynamics]] table");
  }
  const std::filesystem::path out = arguments.out.empty()
                                        ? std::filesystem::path("runs") / std::filesystem::path(arguments.file).stem()
                                        : std::filesystem::path(arguments.out);
  const RunFolder folder = RunFolder::create(out, experiment, arguments.resume);
  if (folder.whole()) {
    if (!arguments.quiet) std::cerr << "nothing is left to run\n";
    return conclude(folder, arguments.quiet) ? done : failed;
  }
  const auto bar = std::make_shared<ProgressBar>(!arguments.quiet);
  const RunStatus status =
      run(experiment, folder, {arguments.threads, arguments.checkpoint_seconds}, watch_with(bar, arguments.quiet));
  bar->clear();
  std::error_code missing;
  if (!arguments.quiet && std::filesystem::exists(folder.summary_file(), missing)) conclude(folder, false);
  return exit_code(status);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "run an experiment into a folder of its own");
  auto arguments = std::make_shared<Arguments>();
  const auto named = [](const std::string& path) { return std::string(path.empty() ? "the name is empty" : ""); };
  command->add_option("FILE", arguments->file, "experiment (TOML)")->required();
  command->add_option("--out", arguments->out, "run folder; default runs/<stem of FILE>")->check(named);
  command->add_option("--threads", arguments->threads, "threads; never changes a result")->check(CLI::Range(1, 1024));
  command
      ->add_option("--checkpoint-seconds", arguments->checkpoint_seconds, "least time between checkpoints; default 10")
      ->check(CLI::Range(0.0, 1e9))
      ->check([](const std::string& text) { return std::string(text.find("nan") == 0 ? "not a number" : ""); });
  command->add_flag("--resume", arguments->resume, "go on with an interrupted or killed run");
  command->add_flag("--theory", arguments->theory, "leave the simulations out");
  command->add_flag("--quiet", arguments->quiet, "say nothing but what went wrong");
  command->callback([&action, arguments] { action = [arguments] { return run_file(*arguments); }; });
}

}  // namespace iclflow::cli
