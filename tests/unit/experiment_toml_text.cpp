#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(experiment_toml_text)

BOOST_AUTO_TEST_CASE(doubles_read_back_bit_for_bit) {
  const std::vector<double> values{0.0,
                                   -0.0,
                                   1.0,
                                   0.1,
                                   1.0 / 3.0,
                                   1e-8,
                                   1e22,
                                   -2.5e300,
                                   123456789.0,
                                   5e-324,
                                   std::numeric_limits<double>::max(),
                                   0.30000000000000004};
  TomlText text;
  text.put("values", values);
  const Document document = parse_document(text.text(), "f.toml");
  const auto read = Section(document).numbers("values", Sign::any);
  BOOST_REQUIRE_EQUAL(read.size(), values.size());
  for (std::size_t k = 0; k < values.size(); ++k) {
    BOOST_TEST(std::bit_cast<std::uint64_t>(read[k]) == std::bit_cast<std::uint64_t>(values[k]), values[k]);
  }
}

BOOST_AUTO_TEST_CASE(strings_read_back_whatever_they_hold) {
  std::string hostile = "a \"quoted\" \\ back`slash` $x\t\r\n\x7f\x01 \xc3\xa9 '''";
  TomlText text;
  text.table("t");
  text.put("s", hostile);
  text.put("list", std::vector<std::string>{"x", hostile});
  const Document document = parse_document(text.text(), "f.toml");
  const Section table = Section(document).section("t");
  BOOST_TEST(table.text("s") == hostile);
  BOOST_TEST(table.texts("list").at(1) == hostile);
}

BOOST_AUTO_TEST_CASE(equal_entries_shrink_to_one_number) {
  BOOST_TEST(TomlText::number_or_rows(Matrix::Constant(2, 3, 0.5)) == "0.5");
  Matrix rows(2, 2);
  rows << 1, 2, 3, 4;
  BOOST_TEST(TomlText::number_or_rows(rows) == "[[1.0, 2.0], [3.0, 4.0]]");
}

BOOST_AUTO_TEST_SUITE_END()
