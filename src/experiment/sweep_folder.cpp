#include "iclflow/experiment/sweep_folder.hpp"

#include <fmt/format.h>

#include <system_error>

#include "iclflow/experiment/run_folder.hpp"

namespace iclflow {

namespace fs = std::filesystem;

namespace {

bool is_sweep_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::exists(path / "sweep.toml", error);
}

/// Empty, or as another process that shares it leaves it while it makes it.
bool is_unused(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "members" && name != "sweep.toml" && name != "sweep.toml.part") return false;
  }
  return !error;
}

/// Processes that share a folder write the same text at the same time; whoever is first will do.
void write_shared(const fs::path& file, const std::string& text) {
  std::error_code error;
  if (fs::exists(file, error) && read_text(file) == text) return;
  try {
    write_whole(file, text);
  } catch (const std::runtime_error&) {
    if (!fs::exists(file, error)) throw;
  }
}

}  // namespace

SweepFolder SweepFolder::create(const fs::path& path, const Sweep& sweep, const std::string& text, bool existing) {
  SweepFolder folder(path.has_filename() ? path : path.parent_path());
  std::error_code error;
  if (fs::exists(folder.path_, error) && !existing) {
    throw InputError(fmt::format("{}: exists already; allowed: --resume, or --out naming a new folder", path.string()));
  }
  if (fs::exists(folder.path_, error) && !is_sweep_folder(folder.path_) && !is_unused(folder.path_)) {
    throw InputError(
        fmt::format("{}: is no sweep's folder; allowed: --out naming a sweep's folder or a new one", path.string()));
  }
  fs::create_directories(folder.path_ / "members", error);
  if (error) {
    throw InputError(fmt::format("{}: cannot be made: {}; allowed: --out naming a new folder in a writable place",
                                 path.string(), error.message()));
  }
  folder.check_members(sweep);
  write_shared(folder.sweep_file(), text);
  return folder;
}

SweepFolder SweepFolder::open(const fs::path& path, const Sweep& sweep) {
  SweepFolder folder(path.has_filename() ? path : path.parent_path());
  if (!is_sweep_folder(folder.path_)) {
    throw InputError(
        fmt::format("{}: is no sweep's folder (no sweep.toml); allowed: --out naming the folder that "
                    "`sweep` or its shards wrote",
                    path.string()));
  }
  folder.check_members(sweep);
  return folder;
}

/// Rows of another experiment must not get into the table.
void SweepFolder::check_members(const Sweep& sweep) const {
  for (std::size_t k = 0; k < sweep.size(); ++k) {
    const fs::path file = member(sweep.name(k)) / "experiment.toml";
    std::error_code error;
    if (!fs::exists(file, error) || read_text(file) == sweep.experiment(k).resolved()) continue;
    throw InputError(
        fmt::format("{}: holds the run of another experiment; allowed: the sweep that it is a member of, "
                    "or --out naming a new folder",
                    file.parent_path().string()));
  }
}

}  // namespace iclflow
