#include "watched_run.hpp"

#include <algorithm>
#include <iostream>
#include <thread>

#include "interruption.hpp"

namespace iclflow::cli {

std::filesystem::path WatchedArguments::folder() const {
  if (!out.empty()) return out;
  return std::filesystem::path("runs") / std::filesystem::path(file).stem();
}

void add_watched_options(CLI::App& command, WatchedArguments& arguments, const std::string& threads,
                         const std::string& resume) {
  arguments.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 1024U));
  const auto named = [](const std::string& path) { return std::string(path.empty() ? "the name is empty" : ""); };
  command.add_option("FILE", arguments.file, "experiment (TOML)")->required();
  command.add_option("--out", arguments.out, "folder; default runs/<stem of FILE>")->check(named);
  command.add_option("--threads", arguments.threads, threads)->check(CLI::Range(1, 1024));
  command
      .add_option("--checkpoint-seconds", arguments.checkpoint_seconds, "least time between checkpoints; default 10")
      ->check(CLI::Range(0.0, 1e9))
      ->check([](const std::string& text) { return std::string(text.find("nan") == 0 ? "not a number" : ""); });
  command.add_flag("--resume", arguments.resume, resume);
  command.add_flag("--theory", arguments.theory, "leave out simulations and what else is sampled token by token");
  command.add_flag("--quiet", arguments.quiet, "say nothing but what went wrong");
}

Watch watch_with(const std::shared_ptr<ProgressBar>& bar, bool quiet, const char* unit) {
  Watch watch;
  watch.interrupted = was_interrupted;
  watch.progress = [bar, unit](const std::string& label, double fraction, double done) {
    bar->show(label, fraction, done, unit);
  };
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

}  // namespace iclflow::cli
