#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/json_file.hpp"
#include "iclflow/experiment/sweep.hpp"
#include "iclflow/mesa/autoregressive.hpp"
#include "iclflow/regression/regression.hpp"
#include "structure/source_tree.hpp"

namespace fs = std::filesystem;

namespace {

std::string trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t") - first + 1);
}

std::string trimmed_text(const fs::path& file) {
  std::string text = "\n";
  for (const std::string& line : source_tree::lines(file)) text += trimmed(line) + "\n";
  return text;
}

/// Formulas that the code names as `theory: eq:...` (one comment may name several).
std::map<std::string, std::string> cited_formulas() {
  return source_tree::matches(
      source_tree::code({"include", "src", "tests/unit", "tests/laws", "tests/agreement", "examples"}),
      R"(\beq:([A-Za-z0-9_-]+))");
}

/// Blocks of a Markdown file that follow `<!-- quoted from FILE -->`, with indentation removed.
std::vector<std::pair<std::string, std::string>> quotations(const fs::path& document) {
  const std::string mark = "<!-- quoted from ";
  std::vector<std::pair<std::string, std::string>> found;
  bool inside = false;
  for (const std::string& line : source_tree::lines(document)) {
    if (line.starts_with(mark))
      found.emplace_back(line.substr(mark.size(), line.find(" -->") - mark.size()), "");
    else if (line.starts_with("```"))
      inside = !inside && !found.empty() && found.back().second.empty();
    else if (inside)
      found.back().second += trimmed(line) + "\n";
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(documents)

BOOST_AUTO_TEST_CASE(formulas_in_code_and_theory_are_the_same_set) {
  const auto cited = cited_formulas();
  const auto derived =
      source_tree::matches(source_tree::files({"theory"}, {".md"}), R"re(<a id="eq:([A-Za-z0-9_-]+)"></a>)re");
  for (const auto& [name, place] : cited)
    BOOST_TEST(derived.contains(name), place << " cites eq:" << name << ", which theory/ lacks");
  for (const auto& [name, place] : derived)
    BOOST_TEST(cited.contains(name), place << " derives eq:" << name << ", which no code cites");
}

BOOST_AUTO_TEST_CASE(readme_quotes_what_the_examples_say) {
  const auto quoted = quotations("README.md");
  BOOST_TEST(quoted.size() >= 1U);
  for (const auto& [file, text] : quoted) {
    BOOST_TEST(!text.empty(), "nothing quoted from " << file);
    BOOST_TEST(trimmed_text(file).find("\n" + text) != std::string::npos, file << " does not contain:\n" << text);
  }
}

/// The words are put together here so that this file does not name them itself.
BOOST_AUTO_TEST_CASE(no_path_of_one_machine) {
  const std::string slash = "/";
  const std::string expression =
      "(?:^|[^A-Za-z0-9_.:/$}~-])(" + slash + "(?:home|root|Users|work|farm|tmp)" + slash + "[A-Za-z0-9_.][^ \"']*)";
  for (const fs::path& file : source_tree::everything()) {
    if (file.extension() == ".png" || file.extension() == ".pdf" || file.extension() == ".nc") continue;
    for (const auto& [name, place] : source_tree::matches({file}, expression))
      BOOST_ERROR(place << " names " << name << ", a path of one machine");
  }
}

#ifdef ICLFLOW_PROGRAM
BOOST_AUTO_TEST_CASE(every_experiment_is_accepted) {
  const auto experiments = source_tree::files({"experiments"}, {".toml"});
  BOOST_TEST(experiments.size() >= 1U);
  iclflow::Systems systems;
  systems.push_back(iclflow::make_regression());
  systems.push_back(iclflow::make_autoregressive());
  for (const fs::path& file : experiments) {
    const std::string path = (source_tree::root() / file).string();
    iclflow::Document document = iclflow::parse_document(iclflow::read_text(path), path);
    if (iclflow::is_sweep(document)) {
      // reads every member, runs none
      BOOST_CHECK_NO_THROW(iclflow::Sweep(std::move(document), systems, false));
      continue;
    }
    std::optional<iclflow::Experiment> experiment;
    BOOST_CHECK_NO_THROW(experiment = iclflow::make_experiment(document, systems));
    // to sample the baselines of every training would take seconds each
    if (experiment && experiment->study->predicts_by_sampling()) continue;
    const std::string command = std::string("\"") + ICLFLOW_PROGRAM + "\" predict \"" + path + "\" > /dev/null";
    BOOST_TEST(std::system(command.c_str()) == 0, file << " is refused by predict");
  }
}
#endif

BOOST_AUTO_TEST_SUITE_END()
