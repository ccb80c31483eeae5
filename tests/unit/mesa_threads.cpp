#include <boost/test/unit_test.hpp>

#include "iclflow/mesa/training.hpp"

// What the second system shares among threads: groups of a stack's pass, and the drawing of a batch.

BOOST_AUTO_TEST_SUITE(mesa_threads)

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit_of_a_training, *boost::unit_test::label("parallel")) {
  iclflow::SequenceProblem problem;
  problem.state_dimension = 2;
  problem.hidden_dimension = 2;
  problem.length = 5;
  iclflow::StackShape shape;
  shape.layers = {iclflow::LayerKind::linear, iclflow::LayerKind::mesa};
  shape.state_dimension = 2;
  shape.width = 8;
  shape.heads = 2;
  shape.key_dimension = 3;
  iclflow::TrainingOptions options;
  options.batch = 100;
  options.evaluation_sequences = 40;
  options.initial_deviation = 0.3;
  const iclflow::StackTraining alone(problem, shape, options, 1, 1, false);
  const iclflow::StackTraining together(problem, shape, options, 1, 3, false);
  const Eigen::VectorXd theta = alone.initial();
  for (std::uint64_t step = 0; step < 5; ++step) {
    Eigen::VectorXd one;
    Eigen::VectorXd other;
    alone.gradient(step, theta, one);
    together.gradient(step, theta, other);
    BOOST_TEST((one.array() == other.array()).all());
  }
  BOOST_TEST(alone.quantity("loss", theta) == together.quantity("loss", theta));
}

BOOST_AUTO_TEST_SUITE_END()
