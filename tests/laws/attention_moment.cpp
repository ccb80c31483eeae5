#include "iclflow/spectral/attention_moment.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "iclflow/regression/regimes.hpp"

using iclflow::attention_moment;

BOOST_AUTO_TEST_SUITE(attention_moment_laws)

BOOST_AUTO_TEST_CASE(reference_values) {
  // Printed to six decimals.
  BOOST_TEST(std::abs(attention_moment(1.0, 40.0) - .059642) < 5.1e-7);
  BOOST_TEST(std::abs(attention_moment(1.0, 10.0) - .194687) < 5.1e-7);
  BOOST_TEST(std::abs(attention_moment(2.0, 100.0) - .053148) < 5.1e-7);
  BOOST_TEST(std::abs(attention_moment(1.0, 1000.0) - .002698) < 5.1e-7);
}

BOOST_AUTO_TEST_CASE(what_is_known_in_closed_form) {
  // One token, or scores that do not differ; quadrature to 1e-11 by its error model.
  for (const double a : {0.0, 0.3, 3.0, 12.0, 40.0}) BOOST_TEST(std::abs(attention_moment(a, 1.0) - 1.0) < 1e-10);
  for (const double length : {2.0, 7.0, 1e3, 1e7}) {
    // B is raised to the power L - 1: L roundings.
    const double tolerance = 1e-10 + length * std::numeric_limits<double>::epsilon();
    BOOST_TEST(attention_moment(0.0, length) == 1.0 / length, boost::test_tools::tolerance(tolerance));
  }
  // |p|^2 lies between 1/L and 1 and grows with the variance.
  double before = 0.05;
  for (double a = 0.5; a <= 40.0; a += 0.5) {
    const double now = attention_moment(a, 20.0);
    BOOST_TEST(now > before);
    BOOST_TEST(now < 1.0);
    before = now;
  }
}

BOOST_AUTO_TEST_CASE(both_regimes_are_its_limits) {
  // e^a/L with a correction of relative order e^a/L: the gap falls as 1/L^2, at 10^4 tokens up to e^{3a}/L = 0.002.
  const auto gap = [](double length) {
    return iclflow::exponential_moment(1.0, length) - attention_moment(1.0, length);
  };
  BOOST_TEST(std::abs(std::log2(gap(1e4) / gap(4e4)) / 2.0 - 2.0) < 0.01);
  // Saturation is approached as 1/log L: at a = 4 log L the limit is 1 - sqrt(1/2), from above, ever closer.
  double before = 1.0;
  for (const double length : {30.0, 300.0, 3000.0, 2e4}) {
    const double a = 4.0 * std::log(length);
    BOOST_TEST(std::abs(iclflow::saturated_moment(a, length) - (1.0 - std::sqrt(0.5))) < 1e-12);
    const double distance = attention_moment(a, length) - iclflow::saturated_moment(a, length);
    BOOST_TEST(distance > 0.0);
    BOOST_TEST(distance < before);
    before = distance;
  }
  BOOST_TEST(iclflow::saturated_moment(2.0, 100.0) == 0.0);
}

// Softmax of sampled scores, in units of its standard error; 4.5 is passed in 7e-6 of cases.
BOOST_AUTO_TEST_CASE(sampled_attention_agrees) {
  for (const auto& [variance, length] :
       {std::pair{0.5, 3}, std::pair{1.0, 40}, std::pair{3.0, 100}, std::pair{8.0, 100}, std::pair{20.0, 400}}) {
    const auto sampled = iclflow::sample_moment(variance, length, 4000, 1);
    const double z = (sampled.value - attention_moment(variance, length)) / sampled.standard_error;
    BOOST_TEST(std::abs(z) < 4.5, "a = " << variance << ", L = " << length << ": z = " << z);
  }
  // The exponential form is excluded where it must be.
  const auto sampled = iclflow::sample_moment(3.0, 100, 4000, 1);
  BOOST_TEST(iclflow::exponential_moment(3.0, 100) - sampled.value > 10.0 * sampled.standard_error);
}

BOOST_AUTO_TEST_CASE(what_it_cannot_do_is_refused) {
  for (const double a : {-0.1, 40.1, std::nan("")}) {
    BOOST_CHECK_THROW(static_cast<void>(attention_moment(a, 10.0)), std::invalid_argument);
  }
  BOOST_CHECK_THROW(static_cast<void>(attention_moment(1.0, 0.5)), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
