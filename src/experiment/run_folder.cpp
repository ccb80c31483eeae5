#include "iclflow/experiment/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "iclflow/experiment/json_file.hpp"

namespace iclflow {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_make(const fs::path& path, const std::string& why) {
  throw InputError(fmt::format("{}: cannot be made: {}; allowed: --out naming a new folder in a writable place",
                               path.string(), why));
}

void make(const fs::path& path, const Experiment& experiment) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_make(path, error.message());
  try {
    for (const Attachment& attachment : experiment.study->attachments()) {
      write_whole(path / attachment.name, attachment.contents);
    }
    write_whole(path / "experiment.toml", experiment.resolved());
  } catch (const std::runtime_error& failure) {
    fs::remove(path, error);  // only if nothing is in it
    cannot_make(path, failure.what());
  }
}

void check_same(const RunFolder& folder, const Experiment& experiment) {
  bool same = read_text(folder.experiment_file()) == experiment.resolved();
  for (const Attachment& attachment : experiment.study->attachments()) {
    same = same && read_text(folder.path() / attachment.name) == attachment.contents;
  }
  if (!same) {
    throw InputError(
        fmt::format("{}: holds the run of another experiment; allowed: --resume with the same experiment, "
                    "or --out naming a new folder",
                    folder.path().string()));
  }
}

}  // namespace

void write_whole(const fs::path& file, std::string_view contents) {
  const fs::path part = file.string() + ".part";
  std::ofstream stream(part, std::ios::binary | std::ios::trunc);
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  std::error_code error;
  if (stream) fs::rename(part, file, error);
  if (!stream || error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    throw std::runtime_error(fmt::format("{}: cannot be written", file.string()));
  }
}

RunFolder RunFolder::create(const fs::path& path, const Experiment& experiment, bool resume) {
  RunFolder folder(path.has_filename() ? path : path.parent_path());
  std::error_code error;
  const bool exists = fs::exists(folder.path_, error);
  if (!exists && error) cannot_make(folder.path_, error.message());
  if (exists && !resume) {
    throw InputError(fmt::format("{}: exists already; allowed: --resume, or --out naming a new folder", path.string()));
  }
  const bool begun = exists && fs::exists(folder.experiment_file(), error);
  if (begun) {
    check_same(folder, experiment);
  } else if (exists && !(fs::is_directory(folder.path_, error) && fs::is_empty(folder.path_, error))) {
    throw InputError(
        fmt::format("{}: is not a run folder; allowed: --out naming a run folder or a new one", path.string()));
  } else {
    make(folder.path_, experiment);
  }
  folder.lock();
  return folder;
}

void RunFolder::lock() {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // where a folder cannot be locked, the user has to take care
  lock_ = std::shared_ptr<const int>(new int(descriptor), [](const int* number) {
    ::close(*number);
    delete number;
  });
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw InputError(
        fmt::format("{}: another process is running into it; allowed: --resume when that has ended, "
                    "or --out naming a new folder",
                    path_.string()));
  }
}

RunFolder RunFolder::open(const fs::path& path) {
  RunFolder folder(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) throw InputError(path.string() + ": no such run folder");
  if (!fs::exists(folder.experiment_file(), error)) {
    throw InputError(path.string() + ": is not a run folder (no experiment.toml); allowed: a folder that `run` wrote");
  }
  return folder;
}

fs::path RunFolder::checkpoint_file(std::string_view dynamics, std::size_t member) const {
  return path_ / "checkpoints" / fmt::format("{}.{}", dynamics, member);
}

nlohmann::ordered_json RunFolder::summary() const {
  const std::string text = read_text(summary_file());
  static_cast<void>(parse_json(text, summary_file().string()));  // strict; the line below keeps the order of keys
  return nlohmann::ordered_json::parse(text);
}

bool RunFolder::whole() const {
  std::error_code error;
  if (!fs::exists(summary_file(), error) || !fs::exists(trajectory_file(), error)) return false;
  const auto json = summary();
  const auto status = json.is_object() ? json.find("status") : json.end();
  return status != json.end() && *status == "completed";
}

void RunFolder::remove_checkpoints() const {
  std::error_code ignored;
  fs::remove_all(path_ / "checkpoints", ignored);
}

struct RunLog::Sink {
  spdlog::logger logger;
};

RunLog::RunLog(const fs::path& file)
    : sink_(std::make_unique<Sink>(
          Sink{spdlog::logger("run", std::make_shared<spdlog::sinks::basic_file_sink_st>(file.string()))})) {
  sink_->logger.set_pattern("%Y-%m-%d %H:%M:%S %l %v");
  sink_->logger.set_error_handler([](const std::string& /*text*/) {});  // a full disk is told once, by the run
  sink_->logger.flush_on(spdlog::level::info);
}

RunLog::~RunLog() = default;

void RunLog::information(const std::string& text) { sink_->logger.info("{}", text); }

void RunLog::problem(const std::string& text) { sink_->logger.error("{}", text); }

}  // namespace iclflow
