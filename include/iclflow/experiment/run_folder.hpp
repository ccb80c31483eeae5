#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "iclflow/experiment/experiment.hpp"

namespace iclflow {

/// Writes `contents` under a temporary name next to `file` and renames it: the file is whole or not there.
/// Throws std::runtime_error naming the file.
void write_whole(const std::filesystem::path& file, std::string_view contents);

/// The folder a run leaves behind: experiment.toml, summary.json, trajectory.nc, figures/, report.html, log.txt, and
/// checkpoints/ while it is not whole.
class RunFolder {
 public:
  /// A new folder with the resolved experiment. With resume, an existing one of the same experiment is taken instead.
  /// Locked against other processes for as long as a copy of the object lives.
  /// Throws InputError when it exists (without resume), holds another experiment, is in use, or cannot be made.
  static RunFolder create(const std::filesystem::path& path, const Experiment& experiment, bool resume);
  /// An existing run folder. Throws InputError unless it holds experiment.toml.
  static RunFolder open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path experiment_file() const { return path_ / "experiment.toml"; }
  [[nodiscard]] std::filesystem::path summary_file() const { return path_ / "summary.json"; }
  [[nodiscard]] std::filesystem::path trajectory_file() const { return path_ / "trajectory.nc"; }
  [[nodiscard]] std::filesystem::path figures() const { return path_ / "figures"; }
  [[nodiscard]] std::filesystem::path report_file() const { return path_ / "report.html"; }
  [[nodiscard]] std::filesystem::path log_file() const { return path_ / "log.txt"; }
  [[nodiscard]] std::filesystem::path checkpoint_file(std::string_view dynamics, std::size_t member) const;

  [[nodiscard]] nlohmann::ordered_json summary() const;  ///< throws InputError
  [[nodiscard]] bool whole() const;                      ///< its trajectory is there and its summary says "completed"
  void remove_checkpoints() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  void lock();

  std::filesystem::path path_;
  std::shared_ptr<const int> lock_;  ///< descriptor of the locked folder
};

/// log.txt: what happened when. Appends.
class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& file);
  ~RunLog();
  void information(const std::string& text);
  void problem(const std::string& text);

 private:
  struct Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace iclflow
