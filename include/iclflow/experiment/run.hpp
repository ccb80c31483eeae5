#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "iclflow/experiment/run_folder.hpp"

namespace iclflow {

/// How a run is watched and stopped. Empty functions are allowed.
struct Watch {
  std::function<bool()> interrupted;
  std::function<void(const std::string& label, double fraction, double time)> progress;  ///< fraction of one dynamics
  std::function<void(const std::string& text)> message;                                  ///< something was done
  std::function<void(const std::string& text)> problem;  ///< one sentence on what went wrong
};

struct RunOptions {
  int threads = 1;
  double checkpoint_seconds = 10.0;  ///< least time between two checkpoints of a member
  bool report = true;                ///< draw figures and write report.html
};

enum class RunStatus { completed, failed, expectation_missed, interrupted };

/// Runs all dynamics of an experiment, or what is left of them, into `folder` and writes all its files.
/// The arrays do not depend on threads, interruptions or checkpoints. Throws std::runtime_error when a file cannot be
/// written.
[[nodiscard]] RunStatus run(const Experiment& experiment, const RunFolder& folder, const RunOptions& options,
                            const Watch& watch);

/// summary.json of results that exist; status "completed" | "interrupted" | "failed". evaluated: of the finished
/// dynamics.
[[nodiscard]] nlohmann::ordered_json make_summary(const Experiment& experiment,
                                                  const std::vector<DynamicsResult>& results,
                                                  const Evaluated& evaluated = {});

}  // namespace iclflow
