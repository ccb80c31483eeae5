// The stiffest direction of the full model: a key that reads a response.
#include "iclflow/spectral/stability.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/spectral/closed_forms.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(stability)

BOOST_AUTO_TEST_CASE(response_key_curvature_is_the_full_models) {
  for (const double noise : {0.0, 5.0}) {
    Problem p;
    p.heads = 2;
    p.task_dimensions = {10, 4};
    p.signal_variance = {1.0, 1.0};
    p.context_length = 2000;
    p.noise_variance = noise;
    p.response_scale = ResponseScale::unit;
    p.score_scale = ScoreScale::inverse_sqrt_embedding;
    const auto limit = dedicated_limit(p);
    BOOST_REQUIRE(limit);
    Matrix mu = Matrix::Zero(2, 2);
    Matrix omega = Matrix::Zero(2, 2);
    for (int i = 0; i < 2; ++i) {
      mu(i, i) = limit->mu[static_cast<std::size_t>(i)];
      omega(i, i) = limit->omega[static_cast<std::size_t>(i)];
    }
    const WeightLayout layout = WeightLayout::of(p);
    const Eigen::VectorXd weights = embed(p, rotations(p), balanced_start(p, mu, omega));
    ThreadTeam team(1);
    TokenEstimator<double> estimator(p, layout, team);
    // Central difference of the batch gradient at common contexts, averaged over batches for a standard error.
    constexpr int batches = 10;
    constexpr double step = 1e-3;
    double sum = 0.0;
    double square = 0.0;
    for (std::uint32_t batch = 0; batch < batches; ++batch) {
      const auto slope = [&](double shift) {
        Eigen::VectorXd moved = weights;
        head(layout, moved, 0).k(3, p.dimension()) += shift;  // key row of covariate 3 (task 0) reads response 0
        const auto mean = estimator(acting(layout, moved), {1, Stream::training, batch, 0}, 300);
        Eigen::VectorXd gradient;
        pull_back(layout, moved, mean.gradient, gradient);
        return head(layout, gradient, 0).k(3, p.dimension());
      };
      const double curvature = (slope(step) - slope(-step)) / (2.0 * step);
      sum += curvature / batches;
      square += curvature * curvature / batches;
    }
    const double error = std::sqrt((square - sum * sum) / (batches - 1));
    const double predicted = response_key_curvature(p, 0, mu(0, 0), omega(0, 0));
    // Sampling error, and what the formula leaves out: terms of relative order e d_i / L = 1.4 %, of either sign.
    BOOST_TEST(std::abs(sum - predicted) < 4.0 * error + 0.03 * predicted,
               sum << "(" << error << ") against " << predicted);
    // The data tell the formula from one without the 2/d of fluctuating signal (17 % at noise 0).
    if (noise == 0.0) BOOST_TEST(std::abs(sum / predicted * 1.2 - 1.0) > 0.1);
  }
}

BOOST_AUTO_TEST_CASE(largest_rate_is_that_of_the_stiffest_task) {
  Problem p;
  p.heads = 2;
  p.task_dimensions = {10, 4};
  p.signal_variance = {1.0, 1.0};
  p.context_length = 1000;
  const auto limit = dedicated_limit(p);
  BOOST_REQUIRE(limit);
  const double stiffest = std::max(response_key_curvature(p, 0, limit->mu[0], limit->omega[0]),
                                   response_key_curvature(p, 1, limit->mu[1], limit->omega[1]));
  BOOST_TEST(*largest_learning_rate(p) * stiffest == 2.0, boost::test_tools::tolerance(1e-14));
  p.parametrisation = Parametrisation::merged;
  BOOST_TEST(!largest_learning_rate(p));
  p.parametrisation = Parametrisation::split;
  p.heads = 1;
  BOOST_TEST(!largest_learning_rate(p));
}

BOOST_AUTO_TEST_SUITE_END()
