#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "structure/source_tree.hpp"

namespace fs = std::filesystem;

namespace {

/// Rank of every part of the library; an include leads to a lower rank or stays in its own part.
const std::map<std::string, int> ranks{{"random", 0},    {"trajectory", 0}, {"problem", 1},    {"spectral", 2},
                                       {"attention", 2}, {"reduction", 3},  {"integrate", 4},  {"analysis", 4},
                                       {"plots", 5},     {"experiment", 6}, {"regression", 7}, {"mesa", 7},
                                       {"cli", 8}};

}  // namespace

BOOST_AUTO_TEST_SUITE(architecture)

BOOST_AUTO_TEST_CASE(includes_never_climb) {
  std::size_t arrows = 0;
  for (const fs::path& file : source_tree::code({"include", "src"})) {
    const std::string from = source_tree::part(file);
    BOOST_TEST(ranks.contains(from), file << " stands in no ranked part");
    for (const fs::path& header : source_tree::included(file)) {
      const std::string to = source_tree::part(header);
      BOOST_TEST(ranks.contains(to), file << " includes " << header << ", which stands in no ranked part");
      if (!ranks.contains(from) || !ranks.contains(to)) continue;
      BOOST_TEST((from == to || ranks.at(to) < ranks.at(from)), file << " climbs to " << header);
      ++arrows;
    }
  }
  BOOST_TEST(arrows > 20, "the reader of includes sees nothing");
}

BOOST_AUTO_TEST_CASE(integration_and_analysis_know_no_model) {
  const std::set<std::string> models{"spectral", "attention", "reduction"};
  for (const fs::path& file : source_tree::code({"include", "src"})) {
    const std::string from = source_tree::part(file);
    if (from != "integrate" && from != "analysis") continue;
    for (const fs::path& header : source_tree::included(file))
      BOOST_TEST(!models.contains(source_tree::part(header)), file << " knows the model in " << header);
  }
}

BOOST_AUTO_TEST_CASE(odeint_stands_in_three_files_at_most) {
  std::set<std::string> users;
  for (const fs::path& file : source_tree::code({"include", "src", "tests", "examples", "bench"}))
    for (const std::string& line : source_tree::lines(file))
      if (line.find("#include <boost/numeric/odeint") == 0) users.insert(file.string());
  for (const std::string& user : users) BOOST_TEST_MESSAGE(user);
  BOOST_TEST(users.size() <= 3U);
  BOOST_TEST(users.size() >= 1U, "the reader of includes sees nothing");
}

/// src mirrors include: x/y.cpp implements x/y.hpp, or a part of another header of x, which it then includes first.
/// The command line has no public headers.
BOOST_AUTO_TEST_CASE(sources_mirror_headers) {
  for (const fs::path& file : source_tree::files({"src"}, {".cpp"})) {
    const std::string part = source_tree::part(file);
    if (part == "cli") continue;
    const fs::path twin = ("include/iclflow" / file.lexically_relative("src")).replace_extension(".hpp");
    const std::vector<fs::path> headers = source_tree::included(file);
    BOOST_TEST(!headers.empty(), file << " includes no header of the project");
    if (headers.empty()) continue;
    if (fs::exists(source_tree::root() / twin))
      BOOST_TEST((headers.front() == twin), file << " must include its own header first");
    else
      BOOST_TEST(source_tree::part(headers.front()) == part, file << " must include a header of its own part first");
  }
}

BOOST_AUTO_TEST_CASE(no_header_is_an_orphan) {
  std::set<fs::path> used;
  for (const fs::path& file : source_tree::code({"include", "src", "tests", "examples", "bench"}))
    for (const fs::path& header : source_tree::included(file)) used.insert(header);
  for (const fs::path& header : source_tree::files({"include", "src"}, {".hpp"}))
    BOOST_TEST(used.contains(header), header << " is included by nothing");
}

BOOST_AUTO_TEST_SUITE_END()
