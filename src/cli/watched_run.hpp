#pragma once

#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/run.hpp"
#include "progress_bar.hpp"

namespace iclflow::cli {

/// What `run` and `sweep` have in common on the command line.
struct WatchedArguments {
  std::string file;
  std::string out;
  int threads = 1;
  double checkpoint_seconds = 10.0;
  bool resume = false;
  bool quiet = false;
  bool theory = false;

  /// --out, or runs/<stem of the file>.
  [[nodiscard]] std::filesystem::path folder() const;
};
/// Adds these options with the descriptions that differ.
void add_watched_options(CLI::App& command, WatchedArguments& arguments, const std::string& threads,
                         const std::string& resume);

/// Messages to stderr, progress to the bar, Ctrl-C noticed. unit: of the rate that the bar tells.
[[nodiscard]] Watch watch_with(const std::shared_ptr<ProgressBar>& bar, bool quiet, const char* unit);
[[nodiscard]] int exit_code(RunStatus status);

}  // namespace iclflow::cli
