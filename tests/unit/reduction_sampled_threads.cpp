#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/reduction/sampled_loss.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(reduction_sampled)

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit, *boost::unit_test::label("parallel")) {
  const Problem problem = problems::uneven(Parametrisation::merged);
  const auto blocks = Coordinates::blocks(problem);
  const Eigen::Index size = problem.heads * (problem.tasks() + blocks.size());
  const Eigen::VectorXd x = 0.3 * Eigen::VectorXd::LinSpaced(size, 1.0, 2.0);
  const Eigen::VectorXd direction = (x.array() * 3.0).cos().matrix();
  const SampledLoss one(problem, blocks, {200, 7, 1});
  const SampledLoss three(problem, blocks, {200, 7, 3});
  Eigen::VectorXd a;
  Eigen::VectorXd b;
  one.gradient(x, a);
  three.gradient(x, b);
  BOOST_TEST((a.array() == b.array()).all());
  one.hessian_vector(x, direction, a);
  three.hessian_vector(x, direction, b);
  BOOST_TEST((a.array() == b.array()).all());
  BOOST_TEST(one.value(x) == three.value(x));
  BOOST_TEST(*one.standard_error(x) == *three.standard_error(x));
  const SampledLoss other(problem, blocks, {200, 8, 1});
  BOOST_TEST(other.value(x) != one.value(x));
}

BOOST_AUTO_TEST_SUITE_END()
