// The gradient in score space has the mean of the token gradient: in many directions of weight space at once, wherever
// the weights are, and the loss likewise.
#include "iclflow/attention/score_space_gradient.hpp"

#include <Eigen/Cholesky>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "support/problems.hpp"

using namespace iclflow;

namespace {

constexpr Eigen::Index directions = 24;
constexpr std::uint32_t batches = 400;
constexpr std::size_t contexts = 800;  ///< of a batch

/// Gradients of batches along `directions` random directions, and in the last column the loss.
template <typename Estimate>
Eigen::MatrixXd sample(const WeightLayout& layout, const Eigen::VectorXd& weights, const Estimate& estimate) {
  Eigen::MatrixXd along(layout.size(), directions);
  for (Eigen::Index n = 0; n < directions; ++n) {
    along.col(n) = problems::dense_weights(layout, 1.0, 100 + static_cast<std::uint64_t>(n));
  }
  Eigen::MatrixXd rows(batches, directions + 1);
  const ActingWeights blocks = acting(layout, weights);
  for (std::uint32_t batch = 0; batch < batches; ++batch) {
    const auto mean = estimate(blocks, batch);
    Eigen::VectorXd gradient;
    pull_back(layout, weights, mean.gradient, gradient);
    rows.row(batch).head(directions) = along.transpose() * gradient;
    rows(batch, directions) = mean.loss;
  }
  return rows;
}

struct Moments {
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;  ///< of the mean

  explicit Moments(const Eigen::MatrixXd& rows) : mean(rows.colwise().mean().transpose()) {
    const Eigen::MatrixXd centred = rows.rowwise() - mean.transpose();
    const auto count = static_cast<double>(rows.rows());
    covariance = centred.transpose() * centred / (count * (count - 1.0));
  }
};

Moments tokens(const Problem& p, const WeightLayout& layout, const Eigen::VectorXd& weights) {
  ThreadTeam team(1);
  TokenEstimator<double> estimator(p, layout, team);
  return Moments(sample(layout, weights, [&](const ActingWeights& at, std::uint32_t batch) {
    return estimator(at, {3, Stream::training, batch, 0}, contexts);
  }));
}

template <typename T>
Moments score_space(const Problem& p, const WeightLayout& layout, const Eigen::VectorXd& weights) {
  ThreadTeam team(1);
  ScoreSpaceGradient<T> estimator(p, layout, rotations(p), team);
  return Moments(sample(layout, weights, [&](const ActingWeights& at, std::uint32_t batch) {
    return estimator(at, {3, Stream::score_space, batch, 0}, contexts);
  }));
}

/// Two-sample Hotelling statistic of the difference of means: chi-square with 25 degrees of freedom for normal means
/// (of 320000 contexts); the estimated covariance of 2 x 400 batches widens it by 25/400.
double deviation(const Moments& a, const Moments& b) {
  const Eigen::VectorXd gap = a.mean - b.mean;
  return gap.dot(Eigen::MatrixXd(a.covariance + b.covariance).ldlt().solve(gap));
}

double probability(double chi_square) {
  return boost::math::gamma_q(0.5 * static_cast<double>(directions + 1), 0.5 * chi_square / 1.07);
}

void check(const Problem& p, const Eigen::VectorXd& weights) {
  const WeightLayout layout = WeightLayout::of(p);
  BOOST_REQUIRE(!score_space_obstacle(layout, weights));
  const Moments drawn = tokens(p, layout, weights);
  const double wide = deviation(score_space<double>(p, layout, weights), drawn);
  BOOST_TEST_CONTEXT("chi-square " << wide) { BOOST_TEST(probability(wide) > 1e-3); }
  const double narrow = deviation(score_space<float>(p, layout, weights), drawn);
  BOOST_TEST_CONTEXT("single precision, chi-square " << narrow) { BOOST_TEST(probability(narrow) > 1e-3); }
  // The same data reject a law whose noise is a fifth off.
  Problem other = p;
  other.noise_variance *= 1.2;
  BOOST_TEST(probability(deviation(score_space<double>(other, layout, weights), drawn)) < 1e-6);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(score_space_gradient)

BOOST_AUTO_TEST_CASE(has_the_mean_of_token_gradients_merged, *boost::unit_test::label("slow")) {
  for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
    const Problem p = problems::uneven(Parametrisation::merged, rotation);
    check(p, problems::dense_weights(WeightLayout::of(p), 0.5, 3));
  }
}

BOOST_AUTO_TEST_CASE(has_the_mean_of_token_gradients_where_directions_coincide, *boost::unit_test::label("slow")) {
  Problem p = problems::uneven(Parametrisation::merged);
  const WeightLayout layout = WeightLayout::of(p);
  Eigen::VectorXd weights = problems::dense_weights(layout, 0.5, 3);
  head(layout, weights, 1).w = Matrix(head(layout, weights, 0).w);
  check(p, weights);
}

BOOST_AUTO_TEST_CASE(has_the_mean_of_token_gradients_split, *boost::unit_test::label("slow")) {
  // Dense blocks that satisfy the conditions: K_Y lives on rows of the embedding that K_X and Q_X leave empty, V_X on
  // rows that O and V_Y do.
  Problem p = problems::uneven(Parametrisation::split, Rotation::random);
  p.heads = 2;
  const WeightLayout layout = WeightLayout::of(p);
  const int d = p.dimension();
  const int tasks = p.tasks();
  Eigen::VectorXd weights = problems::dense_weights(layout, 0.7, 3);
  for (int h = 0; h < p.heads; ++h) {
    HeadView<double> at = head(layout, weights, h);
    at.k.bottomLeftCorner(tasks, d).setZero();
    at.q.bottomLeftCorner(tasks, d).setZero();
    at.k.topRightCorner(d, tasks).setZero();
    at.v.topLeftCorner(d, d).setZero();
    at.o.rightCols(tasks).setZero();
    at.v.bottomRightCorner(tasks, tasks).setZero();
  }
  check(p, weights);
}

BOOST_AUTO_TEST_CASE(descent_keeps_the_conditions) {
  // Ten steps from a dense start that satisfies them: products that vanish keep vanishing to rounding.
  Problem p = problems::uneven(Parametrisation::split, Rotation::random);
  const WeightLayout layout = WeightLayout::of(p);
  const int d = p.dimension();
  const int tasks = p.tasks();
  Eigen::VectorXd weights = problems::dense_weights(layout, 0.5, 3);
  for (int h = 0; h < p.heads; ++h) {
    HeadView<double> at = head(layout, weights, h);
    at.k.bottomLeftCorner(tasks, d).setZero();
    at.q.bottomLeftCorner(tasks, d).setZero();
    at.k.topRightCorner(d, tasks).setZero();
    at.v.leftCols(d).setZero();
  }
  ThreadTeam team(1);
  ScoreSpaceGradient<double> estimator(p, layout, rotations(p), team);
  for (std::uint32_t step = 0; step < 10; ++step) {
    Eigen::VectorXd gradient;
    pull_back(layout, weights, estimator(acting(layout, weights), {3, Stream::score_space, step, 0}, 64).gradient,
              gradient);
    weights -= 0.1 * gradient;
    BOOST_TEST(!score_space_obstacle(layout, weights));
  }
  // Without K_Y^T K_X = 0 the YX block grows, though it vanishes at the start.
  HeadView<double> first = head(layout, weights, 0);
  first.k.rightCols(tasks).setZero();
  first.q.row(0).setZero();
  first.k.row(0).setOnes();
  BOOST_TEST((first.k.rightCols(tasks).transpose() * first.q.leftCols(d)).norm() == 0.0);
  const std::optional<std::string> words = score_space_obstacle(layout, weights);
  BOOST_REQUIRE(words.has_value());
  BOOST_TEST(words->find("K_Y^T K_X of head 0") != std::string::npos);
}

// However long the directions are: where attention saturates the part of known mean must not add noise.
BOOST_AUTO_TEST_CASE(varies_less_than_token_gradients_at_any_size_of_weights) {
  Problem p;
  p.task_dimensions = {5, 5};
  p.signal_variance = {1.0, 1.0};
  p.context_length = 50;
  p.heads = 2;
  p.noise_variance = 0.1;
  p.parametrisation = Parametrisation::merged;
  const WeightLayout layout = WeightLayout::of(p);
  const Rotations basis = rotations(p);
  ThreadTeam team(1);
  TokenEstimator<double> tokens(p, layout, team);
  ScoreSpaceGradient<double> score_space(p, layout, basis, team);
  constexpr int draws = 60;
  const auto variance = [&](auto& estimator, Stream stream, const Eigen::VectorXd& weights) {
    Eigen::VectorXd gradient;
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(layout.size());
    double squares = 0.0;
    for (std::uint32_t k = 0; k < draws; ++k) {
      pull_back(layout, weights, estimator(acting(layout, weights), {7, stream, k, 0}, 100).gradient, gradient);
      sum += gradient;
      squares += gradient.squaredNorm();
    }
    return (squares - sum.squaredNorm() / draws) / (draws - 1);
  };
  for (const double scale : {0.1, 1.0, 10.0}) {
    const Eigen::VectorXd weights = embed(p, basis, random_start(p, scale, 3));
    // Each variance is known to sqrt(2 / 59) = 18 % at worst; the ratio is 20 to 50.
    BOOST_TEST(variance(tokens, Stream::training, weights) > 5.0 * variance(score_space, Stream::score_space, weights));
  }
}

BOOST_AUTO_TEST_SUITE_END()
