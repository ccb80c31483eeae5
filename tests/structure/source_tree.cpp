#include "structure/source_tree.hpp"

#include <algorithm>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace source_tree {

namespace fs = std::filesystem;

fs::path root() { return ICLFLOW_SOURCE_DIR; }

std::vector<std::string> lines(const fs::path& file) {
  std::ifstream stream(root() / file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::vector<std::string> text;
  for (std::string line; std::getline(stream, line);) text.push_back(line);
  return text;
}

std::vector<fs::path> files(const std::vector<std::string>& folders, const std::vector<std::string>& extensions) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(root() / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
      if (entry.is_regular_file() &&
          std::find(extensions.begin(), extensions.end(), entry.path().extension().string()) != extensions.end())
        found.push_back(fs::relative(entry.path(), root()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> code(const std::vector<std::string>& folders) { return files(folders, {".hpp", ".cpp"}); }

std::vector<fs::path> everything() {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(root()); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    const bool hidden = name.starts_with(".") && name != ".ci" && entry->is_directory();
    const bool product = entry.depth() == 0 && (name.starts_with("build") || name == "runs");
    const bool outside = hidden || product || name == "__pycache__" || name == ".git";
    if (outside && entry->is_directory()) entry.disable_recursion_pending();
    if (!outside && entry->is_regular_file()) found.push_back(fs::relative(entry->path(), root()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string part(const fs::path& file) {
  std::vector<std::string> step;
  for (const fs::path& name : file) step.push_back(name.string());
  const std::size_t depth = !step.empty() && step[0] == "include" ? 2 : 1;
  const bool library = !step.empty() && (step[0] == "include" || step[0] == "src");
  return library && step.size() > depth + 1 ? step[depth] : "";
}

std::vector<fs::path> included(const fs::path& file) {
  static const std::regex quoted(R"re(^\s*#\s*include\s*"([^"]+)")re");
  std::vector<fs::path> headers;
  std::smatch match;
  for (const std::string& line : lines(file)) {
    if (!std::regex_search(line, match, quoted)) continue;
    const fs::path name = match[1].str();
    for (const fs::path& folder : {file.parent_path(), fs::path("include"), fs::path("src")}) {
      const fs::path candidate = (folder / name).lexically_normal();
      if (!fs::is_regular_file(root() / candidate)) continue;
      headers.push_back(candidate);
      break;
    }
  }
  return headers;
}

std::map<std::string, std::string> matches(const std::vector<fs::path>& files, const std::string& expression) {
  const std::regex pattern(expression);
  std::map<std::string, std::string> found;
  for (const fs::path& file : files) {
    const std::vector<std::string> text = lines(file);
    for (std::size_t i = 0; i < text.size(); ++i)
      for (std::sregex_iterator match(text[i].begin(), text[i].end(), pattern), end; match != end; ++match)
        found.try_emplace((*match)[1].str(), file.string() + ":" + std::to_string(i + 1));
  }
  return found;
}

}  // namespace source_tree
