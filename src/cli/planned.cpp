#include "commands.hpp"

namespace iclflow::cli {

void add_planned(CLI::App& app, Action& action) {
  for (const char* name : {"optimum"}) {
    auto* command = app.add_subcommand(name, "planned");
    command->allow_extras();
    command->callback([&action, name] {
      action = [name]() -> int { throw InputError(std::string(name) + " is planned and not there yet"); };
    });
  }
}

}  // namespace iclflow::cli
