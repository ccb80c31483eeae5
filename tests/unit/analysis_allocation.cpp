#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

#include "iclflow/analysis/allocation.hpp"

BOOST_AUTO_TEST_SUITE(analysis_allocation)

using iclflow::Allocation;
using iclflow::Matrix;

BOOST_AUTO_TEST_CASE(shares_and_winners) {
  Matrix mu(2, 2);
  mu << 3.0, 0.5, 1.0, 1.0;
  Matrix omega(2, 2);
  omega << 1.0, 1.0, 1.0, 1.5;
  const Allocation found = iclflow::allocate(mu, omega);
  BOOST_TEST(*found.head[0] == 0);
  BOOST_TEST(*found.head[1] == 1);
  BOOST_TEST(found.share(0, 0) == 0.75);
  BOOST_TEST(found.share(1, 0) == 0.25);
  BOOST_TEST(found.share(0, 1) == 0.25);
  BOOST_TEST(found.share(1, 1) == 0.75);
  BOOST_TEST(found.ties[0].empty());
  BOOST_TEST(found.double_winners.empty());
}

BOOST_AUTO_TEST_CASE(ties_double_winners_and_opposite_signs) {
  Matrix mu(3, 2);
  mu << 1.0, -2.0, 1.0 - 0.5 * iclflow::tie_tolerance, 0.1, 0.9, 0.1;
  Matrix omega(3, 2);
  omega << 1.0, -1.0, 1.0, 1.0, 1.0, 1.0;
  const Allocation found = iclflow::allocate(mu, omega);
  BOOST_TEST(found.ties[0] == (std::vector<int>{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(found.ties[1].empty());
  BOOST_TEST_REQUIRE(found.double_winners.size() == 1U);
  BOOST_TEST(found.double_winners[0].first == 0);
  BOOST_TEST(found.double_winners[0].second == (std::vector<int>{0, 1}), boost::test_tools::per_element());
  BOOST_TEST(std::abs(found.share.col(1).sum() - 1.0) < 1e-15);  // three quotients rounded
}

BOOST_AUTO_TEST_CASE(nothing_learned_and_cancelling_heads) {
  Matrix mu(2, 2);
  mu << 0.0, 1.0, 0.0, -1.0;
  const Matrix omega = Matrix::Ones(2, 2);
  const Allocation found = iclflow::allocate(mu, omega);
  BOOST_TEST(!found.head[0].has_value());
  BOOST_TEST(found.head[1].has_value());
  BOOST_TEST(found.ties[1].size() == 2U);
  BOOST_TEST(found.share.isZero(0.0));
  BOOST_CHECK_THROW(static_cast<void>(iclflow::allocate(mu, Matrix::Ones(2, 3))), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
