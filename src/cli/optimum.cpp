#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>

#include "commands.hpp"

namespace iclflow::cli {

namespace {

struct Arguments {
  std::string file;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 1024U));
  bool json = false;
};

int optimum(const Arguments& arguments) {
  const Experiment experiment = read_experiment(arguments.file, systems());
  const nlohmann::ordered_json best = experiment.study->optimum(arguments.threads);
  std::cout << (arguments.json ? best.dump(2) + "\n" : experiment.study->describe_optimum(best));
  return done;
}

}  // namespace

void add_optimum(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("optimum", "the best weights for an experiment's problem, from many starts");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("FILE", arguments->file, "experiment (TOML); [optimum] sets closure, starts, seed")->required();
  command->add_option("--threads", arguments->threads, "threads; never changes a result")->check(CLI::Range(1, 1024));
  command->add_flag("--json", arguments->json, "as JSON, the `optimum` of summary.json");
  command->callback([&action, arguments] { action = [arguments] { return optimum(*arguments); }; });
}

}  // namespace iclflow::cli
