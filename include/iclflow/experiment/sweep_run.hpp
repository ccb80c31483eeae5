#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "iclflow/experiment/run.hpp"
#include "iclflow/experiment/sweep.hpp"
#include "iclflow/experiment/table.hpp"

namespace iclflow {

/// One n-th of a sweep's members: those whose number leaves `index` over `count`.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
  [[nodiscard]] bool holds(std::size_t member) const { return member % count == index; }
};

/// The folder of a sweep: sweep.toml, members/NAME/ (a run folder each), table.csv, table.nc, summary.json, figures/,
/// report.html.
class SweepFolder {
 public:
  /// A new folder, or with `existing` one that holds members of the same sweep. Several processes may share it.
  /// text: the sweep's file. Throws InputError.
  static SweepFolder create(const std::filesystem::path& path, const Sweep& sweep, const std::string& text,
                            bool existing);
  /// An existing one. Throws InputError.
  static SweepFolder open(const std::filesystem::path& path, const Sweep& sweep);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path member(const std::string& name) const { return path_ / "members" / name; }
  [[nodiscard]] std::filesystem::path sweep_file() const { return path_ / "sweep.toml"; }
  [[nodiscard]] std::filesystem::path summary_file() const { return path_ / "summary.json"; }

 private:
  explicit SweepFolder(std::filesystem::path path) : path_(std::move(path)) {}
  void check_members(const Sweep& sweep) const;
  std::filesystem::path path_;
};

/// Runs what is left of a shard's members, several at a time, each into its own folder. No result depends on the number
/// of threads. A member that fails is told and does not stop the others.
[[nodiscard]] RunStatus run_members(const Sweep& sweep, const SweepFolder& folder, const Shard& shard,
                                    const RunOptions& options, const Watch& watch);

/// One row per member from the members' summaries; a member without one has the status "missing".
[[nodiscard]] Table read_table(const Sweep& sweep, const SweepFolder& folder);

/// Writes table.csv, table.nc, fits, figures, checks, summary.json and report.html from what the members left.
/// failed: some member is not whole; expectation_missed: a check or an [expect] is.
[[nodiscard]] RunStatus finish_sweep(const Sweep& sweep, const SweepFolder& folder, const Watch& watch);

}  // namespace iclflow
