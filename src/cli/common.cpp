#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "commands.hpp"
#include "iclflow/mesa/autoregressive.hpp"
#include "iclflow/regression/regression.hpp"
#include "iclflow/trajectory/netcdf.hpp"

namespace iclflow::cli {

namespace {

/// Whether reading the file ends the process that does so: HDF5 follows some damaged references out of its memory.
bool is_deadly(const std::filesystem::path& file) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    try {
      static_cast<void>(read_netcdf(file));
    } catch (...) {  // a clean error: the parent will meet it again and tell
    }
    ::_exit(0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

}  // namespace

Systems systems() {
  Systems all;
  all.push_back(make_regression());
  all.push_back(make_autoregressive());
  return all;
}

std::vector<DynamicsResult> read_trajectory(const RunFolder& folder) {
  const std::filesystem::path file = folder.trajectory_file();
  const auto refuse = [&](const std::string& what) {
    throw InputError(fmt::format("{}; allowed: the trajectory.nc that `run` wrote", what));
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    refuse(file.string() + (std::filesystem::exists(file, error) ? ": is no regular file" : ": no such file"));
  }
  if (is_deadly(file)) refuse(file.string() + ": is damaged");
  std::vector<DynamicsResult> results;
  try {
    results = read_netcdf(file);
  } catch (const std::runtime_error& failure) {
    refuse(failure.what());
  }
  return results;
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace iclflow::cli
