#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/experiment/sample_times.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(experiment_times)

BOOST_AUTO_TEST_CASE(linear_times_start_at_zero_and_end_exactly) {
  const auto times = SampleTimes{0.7, 7, false, 0.0}.times();
  BOOST_REQUIRE_EQUAL(times.size(), 8U);
  BOOST_TEST(times.front() == 0.0);
  BOOST_TEST(times.back() == 0.7);
  // k * final / samples: one rounding of the quotient, one of the product
  for (std::size_t k = 0; k < times.size(); ++k) {
    BOOST_TEST(std::abs(times[k] - 0.1 * static_cast<double>(k)) <= 2.3e-16);
  }
}

BOOST_AUTO_TEST_CASE(logarithmic_times_have_equal_ratios) {
  const auto times = SampleTimes{1000.0, 7, true, 1e-3}.times();
  BOOST_REQUIRE_EQUAL(times.size(), 8U);
  BOOST_TEST(times[0] == 0.0);
  BOOST_TEST(times[1] == 1e-3);
  BOOST_TEST(times[7] == 1000.0);
  // 6 ratios of 10; pow is right to an ulp or two
  for (std::size_t k = 2; k < times.size(); ++k) BOOST_TEST(std::abs(times[k] / times[k - 1] - 10.0) < 1e-13);
}

BOOST_AUTO_TEST_CASE(one_sample_is_the_end) {
  for (const bool logarithmic : {false, true}) {
    const std::vector<double> expected{0.0, 3.0};
    BOOST_TEST((SampleTimes{3.0, 1, logarithmic, 1e-3}.times()) == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_resolved_reads_back) {
  const Document document = parse_document("[time]\nfinal = 12\nsamples = 3\nspacing = 'log'\n", "f.toml");
  const SampleTimes time = read_sample_times(Section(document).section("time"));
  BOOST_TEST(time.first == 12.0 * 1e-4);
  TomlText text;
  time.resolve(text);
  const Document again = parse_document(text.text(), "g.toml");
  BOOST_TEST(read_sample_times(Section(again).section("time")).times() == time.times(),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
