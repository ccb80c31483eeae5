// Laws of the full-parameter gradient flow on fixed contexts.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/regression/simulation.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(full_flow)

namespace {

struct Conserved {
  Matrix key_query;     // K K^T - Q_X Q_X^T
  Matrix output_value;  // O^T O - V V^T
};

Conserved conserved(const WeightLayout& layout, const Eigen::VectorXd& weights, int h) {
  const HeadView<const double> at = head(layout, weights, h);
  const Matrix query = at.q.leftCols(layout.dimension);
  return {at.k * at.k.transpose() - query * query.transpose(), at.o.transpose() * at.o - at.v * at.v.transpose()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(factor_imbalances_are_conserved_and_the_batch_loss_falls) {
  Problem p = problems::uneven(Parametrisation::split);
  p.heads = 2;
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = problems::dense_weights(layout, 0.4, 3);
  SimulationOptions options;
  options.batch = 40;
  options.evaluation_contexts = 50;
  const auto flow = make_gradient_flow(p, layout, weights, options);
  StepperOptions stepper;
  stepper.stepper = "fehlberg78";
  stepper.relative_tolerance = 1e-11;
  stepper.absolute_tolerance = 1e-13;
  ThreadTeam team(1);
  TokenEstimator<double> estimator(p, layout, team);
  Eigen::VectorXd state = weights;
  double loss = estimator(acting(layout, state), {options.seed, Stream::training, 0, 0}, 40).loss;
  const double first_loss = loss;
  for (int leg = 0; leg < 5; ++leg) {
    const auto from = make_gradient_flow(p, layout, state, options);
    const Outcome outcome = integrate(*from, {0.0, 2.0}, stepper);
    BOOST_REQUIRE(outcome.status == Status::completed);
    state = outcome.last.state;
    const double next = estimator(acting(layout, state), {options.seed, Stream::training, 0, 0}, 40).loss;
    BOOST_TEST(next < loss);
    loss = next;
  }
  BOOST_TEST(loss < 0.9 * first_loss);
  BOOST_TEST((state - weights).norm() > 0.5);
  // Conserved exactly by the flow; the integrator errs by tolerance times a few hundred steps, on entries of order one.
  for (int h = 0; h < p.heads; ++h) {
    const Conserved before = conserved(layout, weights, h);
    const Conserved after = conserved(layout, state, h);
    BOOST_TEST((after.key_query - before.key_query).cwiseAbs().maxCoeff() < 1e-9);
    BOOST_TEST((after.output_value - before.output_value).cwiseAbs().maxCoeff() < 1e-9);
  }
}

BOOST_AUTO_TEST_SUITE_END()
