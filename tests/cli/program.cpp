#include "program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace program {

namespace fs = std::filesystem;

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "iclflow_cli_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
  path_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string Scratch::write(const std::string& name, const std::string& text) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << text;
  return (path_ / name).string();
}

std::string read(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

Running::Running(const Scratch& scratch, const std::vector<std::string>& arguments)
    : Running(scratch, ICLFLOW_PROGRAM, arguments) {}

Running::Running(const Scratch& scratch, const std::string& program, const std::vector<std::string>& arguments) {
  static int counter = 0;
  out_ = scratch / ("out" + std::to_string(counter));
  err_ = scratch / ("err" + std::to_string(counter++));
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int error = ::posix_spawnp(&pid_, program.c_str(), &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot start " + program);
}

bool Running::ended() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

bool Running::wait_for(const fs::path& file, double seconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!fs::exists(file)) {
    if (ended() || std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Running::signal(int number) const { ::kill(pid_, number); }

Finished Running::wait() {
  if (!ended()) {
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return {code, read(out_), read(err_)};
}

Finished iclflow(const Scratch& scratch, const std::vector<std::string>& arguments) {
  return Running(scratch, arguments).wait();
}

std::filesystem::path into(const Scratch& scratch, const std::string& command, const std::string& file,
                           const std::string& name, const std::vector<std::string>& options, int code) {
  std::vector<std::string> arguments{command, file, "--quiet", "--out", (scratch / name).string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Finished answer = iclflow(scratch, arguments);
  BOOST_REQUIRE_MESSAGE(answer.code == code, "exit " << answer.code << ": " << answer.err);
  return scratch / name;
}

std::string small_experiment() {
  return R"(title = "Small"
[problem]
heads = 2
task_dimensions = [2, 3]
context_length = 20
response_scale = "unit"
noise_variance = 0.1
[initial]
mu = [[0.3, 0.1], [0.1, 0.3]]
omega = 0.1
[time]
final = 0.5
samples = 5
spacing = "linear"
[[dynamics]]
name = "theory"
kind = "spectral-flow"
stepper = "dopri5"
[[dynamics]]
name = "simulation"
kind = "attention"
learning_rate = 0.05
batch = 1009
seeds = [1, 2]
evaluation_contexts = 203
[[event]]
quantity = "mu[0][0]"
level = 0.32
direction = "rising"
[report]
figures = []
)";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the experiment does not hold: " + from);
  return text.replace(at, from.size(), to);
}

std::string summary_without_clock(const fs::path& run) {
  auto summary = nlohmann::ordered_json::parse(read(run / "summary.json"));
  summary.erase("wall_seconds");
  if (summary.contains("dynamics")) {
    for (auto& dynamics : summary.at("dynamics")) dynamics.erase("wall_seconds");
  }
  return summary.dump(1);
}

}  // namespace program
