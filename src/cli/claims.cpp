#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/claims_table.hpp"

namespace iclflow::cli {

void add_claims(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("claims", "table of what run and sweep folders say about their claims (Markdown)");
  auto folders = std::make_shared<std::vector<std::string>>();
  command->add_option("FOLDER", *folders, "folders that `run` or `sweep` wrote")->required();
  command->callback([&action, folders] {
    action = [folders] {
      const ClaimsTable table = claims_table({folders->begin(), folders->end()});
      std::cout << table.markdown;
      std::cerr << fmt::format("{} checks shown, {} missed, {} not measured\n", table.met, table.missed,
                               table.not_measured);
      return table.missed == 0 ? done : failed;
    };
  });
}

}  // namespace iclflow::cli
