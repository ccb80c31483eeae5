#include "iclflow/regression/evaluate.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/json_file.hpp"

namespace iclflow::cli {

namespace {

int evaluate_file(const std::string& file) {
  try {
    std::cout << evaluate(read_json(file)).dump() << '\n';
    return done;
  } catch (const JsonError& error) {
    throw InputError(fmt::format("{}: {}: {}", file, error.pointer(), error.what()));
  }
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("evaluate", "loss and gradient of given weights on given contexts");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "weights and contexts (JSON)")->required();
  command->callback([&action, file] { action = [file] { return evaluate_file(*file); }; });
}

}  // namespace iclflow::cli
