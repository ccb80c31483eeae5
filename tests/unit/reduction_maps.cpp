#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/reduction/projection.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(reduction_maps)

namespace {

InitialState mixed_start(const Problem& problem) {
  InitialState start = random_start(problem, 0.7, 12);
  NormalStream normal({12, Stream::initial, 1, 0});
  for (double& value : start.omega.reshaped()) value = 0.5 * normal();
  if (problem.parametrisation == Parametrisation::split) {
    for (double& value : start.imbalance_mu.reshaped()) value = normal();
    for (double& value : start.imbalance_omega.reshaped()) value = normal();
    start.mu(0, 0) = 0.0;  // a vanishing product, once imbalanced and once not
    start.omega(1, 2) = 0.0;
    start.imbalance_omega(1, 2) = 0.0;
    start.inert = 0.3;
  }
  return start;
}

}  // namespace

BOOST_AUTO_TEST_CASE(projection_undoes_embedding_without_leakage) {
  for (const Parametrisation parametrisation : {Parametrisation::merged, Parametrisation::split}) {
    for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
      const Problem p = problems::uneven(parametrisation, rotation);
      const WeightLayout layout = WeightLayout::of(p);
      const Rotations basis = rotations(p);
      const InitialState start = mixed_start(p);
      const Eigen::VectorXd weights = embed(p, basis, start);
      const Projection at = project(layout, basis, weights);
      // Products of a few dozen numbers of order one.
      constexpr double rounding = 1e-14;
      BOOST_TEST((at.mu - start.mu).cwiseAbs().maxCoeff() < rounding);
      BOOST_TEST((at.omega - start.omega).cwiseAbs().maxCoeff() < rounding);
      // A root sum of squares whose squares cancel to rounding of order one.
      BOOST_TEST(at.leakage.key_query < 1e-7);
      BOOST_TEST(at.leakage.output_value < 1e-7);
      BOOST_TEST(at.leakage.cross < rounding);
      BOOST_TEST(at.leakage.value_x < rounding);
      const InitialState back = project_start(p, layout, basis, weights);
      BOOST_TEST((back.imbalance_mu - start.imbalance_mu).cwiseAbs().maxCoeff() < 10 * rounding);
      BOOST_TEST((back.imbalance_omega - start.imbalance_omega).cwiseAbs().maxCoeff() < 10 * rounding);
    }
  }
}

BOOST_AUTO_TEST_CASE(signs_sit_in_output_and_query) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = embed(p, rotations(p), mixed_start(p));
  for (int h = 0; h < p.heads; ++h) {
    const HeadView<const double> at = head(layout, weights, h);
    BOOST_TEST(at.k.minCoeff() >= 0.0);
    BOOST_TEST(at.v.minCoeff() >= 0.0);
    BOOST_TEST(at.o.minCoeff() * at.o.maxCoeff() <= 0.0);
  }
}

BOOST_AUTO_TEST_CASE(every_leakage_block_is_seen_at_its_place) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const Rotations basis = rotations(p);
  const Eigen::VectorXd base = embed(p, basis, balanced_start(p, Matrix::Ones(3, 2), Matrix::Ones(3, 2)));
  const double factor = head(layout, base, 0).k(0, 0);  // sqrt(1 / s_w)
  const double s = layout.score_factor;
  Eigen::VectorXd weights = base;
  head(layout, weights, 0).k(0, 1) += 0.25;
  BOOST_TEST(project(layout, basis, weights).leakage.key_query == s * 0.25 * factor,
             boost::test_tools::tolerance(1e-7));
  weights = base;
  head(layout, weights, 1).k(0, p.dimension()) += 0.25;
  BOOST_TEST(project(layout, basis, weights).leakage.cross == s * 0.25 * factor, boost::test_tools::tolerance(1e-12));
  weights = base;
  head(layout, weights, 2).o(0, p.embedding() - 1) += 0.25;
  BOOST_TEST(project(layout, basis, weights).leakage.output_value == 0.25, boost::test_tools::tolerance(1e-7));
  weights = base;
  head(layout, weights, 2).v(p.embedding() - 1, 0) += 0.25;
  BOOST_TEST(project(layout, basis, weights).leakage.value_x == 0.25, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(random_bases_are_orthogonal_and_keyed) {
  Problem p = problems::uneven(Parametrisation::merged, Rotation::random);
  const Rotations first = rotations(p);
  BOOST_TEST((first.phi * first.phi.transpose() - Matrix::Identity(5, 5)).norm() < 1e-14);
  BOOST_TEST((first.psi * first.psi.transpose() - Matrix::Identity(2, 2)).norm() < 1e-14);
  p.rotation_seed += 1;
  BOOST_TEST((rotations(p).phi - first.phi).norm() > 0.1);
}

BOOST_AUTO_TEST_SUITE_END()
