#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "iclflow/experiment/experiment.hpp"
#include "iclflow/experiment/run_folder.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow::cli {

enum ExitCode : int { done = 0, failed = 1, bad_input = 2, interrupted = 130 };

/// What the chosen subcommand does once the command line is parsed; returns an exit code.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_optimum(CLI::App& app, Action& action);
void add_claims(CLI::App& app, Action& action);

/// Every system the program knows; the first is the default.
[[nodiscard]] Systems systems();

/// The run's trajectory.nc. Throws InputError when it is missing or damaged.
[[nodiscard]] std::vector<DynamicsResult> read_trajectory(const RunFolder& folder);

/// Without line breaks and other control characters, so that a message stays one line whatever a file is called.
[[nodiscard]] std::string one_line(std::string text);

}  // namespace iclflow::cli
