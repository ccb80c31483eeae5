#include "iclflow/trajectory/trajectory.hpp"

#include <boost/test/unit_test.hpp>
#include <stdexcept>

BOOST_AUTO_TEST_SUITE(trajectory)

BOOST_AUTO_TEST_CASE(rows_are_time_major_and_checked) {
  iclflow::Trajectory run;
  const auto mu = run.declare("mu", "output-value", {"head", "task"}, {2, 3});
  const double row[6] = {1, 2, 3, 4, 5, 6};
  run.append(mu, row);
  BOOST_TEST(run["mu"].at(0)[4] == 5);
  BOOST_CHECK_THROW(run.append(mu, 1.0), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(run["omega"]), std::out_of_range);
  BOOST_CHECK_THROW(static_cast<void>(run["mu"].at(1)), std::out_of_range);
}

BOOST_AUTO_TEST_SUITE_END()
