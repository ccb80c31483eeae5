#pragma once

#include "iclflow/experiment/run.hpp"
#include "iclflow/experiment/sweep_folder.hpp"
#include "iclflow/experiment/table.hpp"

namespace iclflow {

/// One row per member from the members' summaries; a member without one has the status "missing".
[[nodiscard]] Table read_table(const Sweep& sweep, const SweepFolder& folder);

/// Writes table.csv, table.nc, fits, figures, checks, summary.json and report.html from what the members left.
/// failed: some member is not whole; expectation_missed: a check or an [expect] is.
[[nodiscard]] RunStatus finish_sweep(const Sweep& sweep, const SweepFolder& folder, const Watch& watch);

}  // namespace iclflow
