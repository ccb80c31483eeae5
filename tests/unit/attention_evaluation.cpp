#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/evaluation_set.hpp"
#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(attention_evaluation)

namespace {

/// Mean loss over independent token batches and its standard error.
LossEstimate token_loss(const Problem& problem, const WeightLayout& layout, const Eigen::VectorXd& weights) {
  ThreadTeam team(1);
  TokenEstimator<double> estimator(problem, layout, team);
  const ActingWeights blocks = acting(layout, weights);
  constexpr int batches = 50;
  double sum = 0.0;
  double square = 0.0;
  for (std::uint32_t k = 0; k < batches; ++k) {
    const double loss = estimator(blocks, {21, Stream::training, k, 0}, 1000).loss;
    sum += loss;
    square += loss * loss;
  }
  const double mean = sum / batches;
  return {mean, std::sqrt((square / batches - mean * mean) / (batches - 1))};
}

/// Two independent unbiased estimates of one number: |z| < 4.
void check_against_tokens(const Problem& problem, const Eigen::VectorXd& weights) {
  const WeightLayout layout = WeightLayout::of(problem);
  ThreadTeam team(1);
  EvaluationSet evaluation(problem, rotations(problem), 0, 20000, team);
  const LossEstimate integrated = evaluation(acting(layout, weights));
  const LossEstimate tokens = token_loss(problem, layout, weights);
  const double z = (integrated.loss - tokens.loss) / std::hypot(integrated.standard_error, tokens.standard_error);
  BOOST_TEST(std::abs(z) < 4.0, "integrated " << integrated.loss << "(" << integrated.standard_error << "), tokens "
                                              << tokens.loss << "(" << tokens.standard_error << ")");
}

}  // namespace

BOOST_AUTO_TEST_CASE(dense_merged_weights) {
  for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
    const Problem p = problems::uneven(Parametrisation::merged, rotation);
    check_against_tokens(p, problems::dense_weights(WeightLayout::of(p), 0.4, 3));
  }
}

BOOST_AUTO_TEST_CASE(dense_split_weights_with_keys_and_values_on_every_row) {
  for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
    const Problem p = problems::uneven(Parametrisation::split, rotation);
    check_against_tokens(p, problems::dense_weights(WeightLayout::of(p), 0.4, 3));
  }
}

BOOST_AUTO_TEST_CASE(more_heads_than_dimensions_and_equal_heads) {
  Problem p = problems::uneven(Parametrisation::merged);
  p.heads = 7;
  check_against_tokens(p, problems::dense_weights(WeightLayout::of(p), 0.3, 4));
  p.heads = 3;
  const Matrix mu = Matrix::Constant(3, 2, 0.3);
  const Matrix omega = Matrix::Constant(3, 2, 0.4);
  check_against_tokens(p, embed(p, rotations(p), balanced_start(p, mu, omega)));
}

BOOST_AUTO_TEST_CASE(value_is_the_same_at_every_call_and_thread_count, *boost::unit_test::label("parallel")) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const ActingWeights blocks = acting(layout, problems::dense_weights(layout, 0.4, 3));
  ThreadTeam one(1), three(3);
  EvaluationSet first(p, rotations(p), 0, 500, one);
  EvaluationSet second(p, rotations(p), 0, 500, three);
  const double loss = first(blocks).loss;
  BOOST_TEST(first(blocks).loss == loss);
  BOOST_TEST(second(blocks).loss == loss);
}

BOOST_AUTO_TEST_CASE(response_keys_add_little_variance) {
  // The correction is a difference at common numbers: with a small YX block the standard error must stay near the
  // integrated one instead of growing to that of drawn G and eps (about twice as large).
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  Matrix mu = Matrix::Constant(3, 2, 0.5);
  Eigen::VectorXd weights = embed(p, rotations(p), balanced_start(p, mu, Matrix::Constant(3, 2, 0.3)));
  ThreadTeam team(1);
  EvaluationSet evaluation(p, rotations(p), 0, 5000, team);
  const LossEstimate without = evaluation(acting(layout, weights));
  head(layout, weights, 0).k.block(0, p.dimension(), 2, 2).setConstant(1e-3);
  const LossEstimate with = evaluation(acting(layout, weights));
  BOOST_TEST(with.loss != without.loss);
  BOOST_TEST(with.standard_error < 1.1 * without.standard_error);
}

BOOST_AUTO_TEST_SUITE_END()
