#include <fmt/format.h>

#include <iostream>

#include "commands.hpp"

namespace iclflow::cli {

namespace {

int list() {
  std::vector<CatalogueEntry> entries;
  for (const auto& system : systems()) {
    entries.push_back({"systems", std::string(system->name()), std::string(system->description())});
  }
  for (const auto& system : systems()) {
    for (auto& entry : system->catalogue()) entries.push_back(std::move(entry));
  }
  std::string category;
  for (const CatalogueEntry& entry : entries) {
    if (entry.category != category) std::cout << (category.empty() ? "" : "\n") << entry.category << '\n';
    category = entry.category;
    std::cout << fmt::format("  {:<24}{}{}\n", entry.name, entry.planned ? "[planned] " : "", entry.description);
  }
  return done;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  app.add_subcommand("list", "systems, closures, steppers, figures, estimators, presets")->callback([&action] {
    action = list;
  });
}

}  // namespace iclflow::cli
