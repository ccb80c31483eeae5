#include <iostream>
#include <memory>

#include "commands.hpp"

namespace iclflow::cli {

namespace {

struct Arguments {
  std::string file;
  bool json = false;
};

int predict(const Arguments& arguments) {
  const Experiment experiment = read_experiment(arguments.file, systems());
  if (arguments.json) {
    std::cout << experiment.study->predict().dump(2) << '\n';
  } else {
    std::cout << experiment.study->describe_prediction();
  }
  return done;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("predict", "closed forms for an experiment; trains and integrates nothing");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("FILE", arguments->file, "experiment (TOML)")->required();
  command->add_flag("--json", arguments->json, "as JSON, the `prediction` of summary.json");
  command->callback([&action, arguments] { action = [arguments] { return predict(*arguments); }; });
}

}  // namespace iclflow::cli
