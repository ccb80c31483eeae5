#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "iclflow/experiment/document.hpp"

namespace {

std::string dotted(int dots) {
  std::string key("a");
  for (int k = 0; k < dots; ++k) key.append(".b");
  return key;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(key_depth)

BOOST_AUTO_TEST_CASE(keys_of_many_dots_are_refused_before_they_are_parsed) {
  BOOST_CHECK_NO_THROW(static_cast<void>(iclflow::parse_document(fmt::format("{} = 1\n", dotted(16)), "e.toml")));
  for (const char* pattern : {"{} = 1\n", "[{}]\n", "x = {{ {} = 1 }}\n", "\"c\" . 'b' . {} = 1\n"}) {
    const std::string text = fmt::format(fmt::runtime(pattern), dotted(17));
    BOOST_CHECK_THROW(static_cast<void>(iclflow::parse_document(text, "e.toml")), iclflow::InputError);
  }
}

BOOST_AUTO_TEST_CASE(other_dots_are_free) {
  const std::string text = fmt::format(
      "# {0}\ntext = \"{0}\\\"{0}\" # {0}\nraw = '{0}\\'\nlong = \"\"\"\n{0}\n\"{0}\"\"\"\n"
      "numbers = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]\n",
      std::string(40, '.'));
  const iclflow::Document document = iclflow::parse_document(text, "e.toml");
  BOOST_TEST(document.root.entries.size() == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
