#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

/// The repository as the structure tests read it.
namespace source_tree {

[[nodiscard]] std::filesystem::path root();

/// Lines of a text file. Throws std::runtime_error naming the file.
[[nodiscard]] std::vector<std::string> lines(const std::filesystem::path& file);

/// Files below the given top-level folders with one of the extensions, sorted, relative to the root.
[[nodiscard]] std::vector<std::filesystem::path> files(const std::vector<std::string>& folders,
                                                       const std::vector<std::string>& extensions);
/// .hpp and .cpp files.
[[nodiscard]] std::vector<std::filesystem::path> code(const std::vector<std::string>& folders);

/// Every file that is part of the repository: what stands in the root but build trees, runs and .git.
[[nodiscard]] std::vector<std::filesystem::path> everything();

/// "integrate" for include/iclflow/integrate/ode.hpp and src/integrate/steppers/rk4.cpp; empty for other files.
[[nodiscard]] std::string part(const std::filesystem::path& file);

/// Project headers that a file includes, relative to the root ("include/iclflow/..." or "src/...").
[[nodiscard]] std::vector<std::filesystem::path> included(const std::filesystem::path& file);

/// name -> first place ("file:line") of every match of the expression's first group.
[[nodiscard]] std::map<std::string, std::string> matches(const std::vector<std::filesystem::path>& files,
                                                         const std::string& expression);

}  // namespace source_tree
