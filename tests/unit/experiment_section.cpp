#include <boost/test/unit_test.hpp>
#include <string>

#include "iclflow/experiment/section.hpp"

using namespace iclflow;

namespace {

/// What reading throws, or "" when it does not.
template <typename Read>
std::string complaint(const Document& document, Read read) {
  try {
    read(Section(document));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_section)

BOOST_AUTO_TEST_CASE(values_come_back_typed) {
  const Document document = parse_document(R"(
a = 3
b = 2.5
c = "x"
d = true
e = [1, 2.5]
f = [[1, 2], [3, 4], [5, 6]]
g.h = 7
)",
                                           "f.toml");
  const Section root(document);
  BOOST_TEST(root.number("a", Sign::positive) == 3.0);
  BOOST_TEST(root.integer("a", 0, 5) == 3);
  BOOST_TEST(root.number("b", Sign::any) == 2.5);
  BOOST_TEST(root.text("c") == "x");
  BOOST_TEST(root.boolean("d", false));
  BOOST_TEST(root.numbers("e", Sign::any)[1] == 2.5);
  const Matrix f = root.matrix("f");
  BOOST_TEST((f.rows() == 3 && f.cols() == 2 && f(2, 0) == 5.0));
  BOOST_TEST(root.section("g").integer("h", 0, 9) == 7);
  BOOST_TEST(root.number("missing", Sign::any, 1.5) == 1.5);
  root.finish();
}

BOOST_AUTO_TEST_CASE(the_first_unknown_key_is_refused_with_what_is_known) {
  const Document document = parse_document("b = 1\na = 2\nz = 3\n", "f.toml");
  const auto read = [](const Section& root) {
    static_cast<void>(root.has("a"));
    static_cast<void>(root.has("other"));
    root.finish();
  };
  BOOST_TEST(complaint(document, read) == "f.toml:1: key 'b': is not known here; allowed: a, other");
}

BOOST_AUTO_TEST_CASE(items_of_arrays_are_named_with_their_own_line) {
  const Document document = parse_document("m = [\n  [1, 2],\n  [3, nan]\n]\n[[t]]\nx = 1\n[[t]]\nx = 'a'\n", "f.toml");
  BOOST_TEST(complaint(document, [](const Section& root) { static_cast<void>(root.matrix("m")); }) ==
             "f.toml:3: key 'm[1][1]': impossible value (nan); allowed: a finite number");
  const auto second = [](const Section& root) { static_cast<void>(root.sections("t").at(1).integer("x", 0, 1)); };
  BOOST_TEST(complaint(document, second) ==
             "f.toml:8: key 't[1].x': wrong type (\"a\"); allowed: an integer from 0 to 1");
}

BOOST_AUTO_TEST_CASE(planned_words_and_keys_say_so) {
  const Document document = parse_document("w = 'later'\n[sweep]\n", "f.toml");
  const auto word = [](const Section& root) { static_cast<void>(root.choice("w", {{"now"}, {"later"}})); };
  BOOST_TEST(complaint(document, word) ==
             "f.toml:1: key 'w': \"later\" is planned and not there yet; allowed: \"now\"");
  BOOST_TEST(complaint(document, [](const Section& root) { root.refuse_planned("sweep"); }) ==
             "f.toml:2: key 'sweep': is planned and not there yet");
}

BOOST_AUTO_TEST_SUITE_END()
