#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace iclflow {

/// What run folders and sweep folders say about the claims of their experiments.
struct ClaimsTable {
  std::string markdown;  ///< one row per check
  std::size_t met = 0;
  std::size_t missed = 0;        ///< checks that are missed, and folders that hold none or did not complete
  std::size_t not_measured = 0;  ///< simulations were left out
};

/// Reads FOLDER/summary.json of each folder. A folder that cannot be read is a row that says so.
[[nodiscard]] ClaimsTable claims_table(const std::vector<std::filesystem::path>& folders);

}  // namespace iclflow
