#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// The built program as a user meets it: arguments in, exit code, stdout and stderr out.
namespace program {

struct Finished {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out;
  std::string err;
};

/// A folder of its own for one test, removed afterwards.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

[[nodiscard]] std::string read(const std::filesystem::path& file);

/// A running program; its output goes to files of `scratch`.
class Running {
 public:
  Running(const Scratch& scratch, const std::vector<std::string>& arguments);
  /// Another program, found in PATH.
  Running(const Scratch& scratch, const std::string& program, const std::vector<std::string>& arguments);
  /// Waits until a file exists, at most `seconds`; false when the program ended or time ran out before.
  [[nodiscard]] bool wait_for(const std::filesystem::path& file, double seconds);
  void signal(int number) const;
  [[nodiscard]] Finished wait();

 private:
  [[nodiscard]] bool ended();

  std::filesystem::path out_, err_;
  int pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

[[nodiscard]] Finished iclflow(const Scratch& scratch, const std::vector<std::string>& arguments);

/// `command` FILE --quiet into scratch/name with more options; the exit code must be as given. Returns the folder.
std::filesystem::path into(const Scratch& scratch, const std::string& command, const std::string& file,
                           const std::string& name, const std::vector<std::string>& options = {}, int code = 0);
inline std::filesystem::path run(const Scratch& scratch, const std::string& file, const std::string& name,
                                 const std::vector<std::string>& options = {}, int code = 0) {
  return into(scratch, "run", file, name, options, code);
}

/// A small experiment with a theory and a simulation of two seeds; a second or so.
[[nodiscard]] std::string small_experiment();
/// `text` with the first `from` replaced; throws std::logic_error when it is not there.
[[nodiscard]] std::string replaced(std::string text, const std::string& from, const std::string& to);

/// summary.json without what may differ between equal runs (wall_seconds).
[[nodiscard]] std::string summary_without_clock(const std::filesystem::path& run);

}  // namespace program
