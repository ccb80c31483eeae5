#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "iclflow/experiment/sweep.hpp"

namespace iclflow {

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

}  // namespace iclflow
