#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/attention/covariate_sampler.hpp"
#include "iclflow/attention/estimators.hpp"
#include "iclflow/attention/evaluation_set.hpp"
#include "iclflow/attention/paired_evaluation.hpp"
#include "iclflow/random/stream.hpp"
#include "support/problems.hpp"

using namespace iclflow;

namespace {

std::vector<Estimator> all_estimators() {
  std::vector<Estimator> estimators;
  for (const EstimatorInfo& info : estimator_kinds()) estimators.push_back({std::string(info.name), info.kind});
  estimators.push_back({"given", EstimatorKind::gradient_step, 0.6});
  estimators.push_back({"given-debiased", EstimatorKind::debiased_gradient_step, 0.7});
  estimators.push_back({"given-ridge", EstimatorKind::ridge, std::nullopt, 2.5});
  return estimators;
}

/// The estimate of a task vector from its definition, by solving the normal equations.
Eigen::VectorXd estimate(const Estimator& which, const Problem& problem, int task, const Eigen::MatrixXd& x,
                         const Eigen::VectorXd& y) {
  const Eigen::Index d = x.rows();
  const double length = problem.context_length;
  const double lambda =
      which.lambda.value_or(problem.noise_variance * static_cast<double>(d) / problem.signal_power(task));
  const Eigen::MatrixXd gram = x * x.transpose();
  switch (which.kind) {
    case EstimatorKind::ridge:
      return (gram + lambda * Eigen::MatrixXd::Identity(d, d)).inverse() * x * y;
    case EstimatorKind::least_squares:
      if (x.cols() >= d) return gram.inverse() * x * y;
      return x * (x.transpose() * x).inverse() * y;
    case EstimatorKind::debiased_gradient_step:
      return rate(which, problem, task) / length * x * (y.array() - y.mean()).matrix();
    default:
      return rate(which, problem, task) / length * x * y;
  }
}

/// Largest difference between losses from quadrature over (g, eps) and EstimatorLosses. The error is linear in the
/// independent normals (g, eps), so that its mean square is the sum of its squares at their unit vectors.
void check_definition(int length) {
  Problem problem = problems::uneven(Parametrisation::merged);
  problem.context_length = length;
  const auto estimators = all_estimators();
  const double noise = 0.45;  // not the training law's
  EstimatorLosses losses(problem, estimators, noise);
  CovariateSampler sampler(problem, {}, 1);
  const CovariateView view = sampler({5, Stream::evaluation, 3, 2});
  std::vector<double> found(estimators.size());
  losses(view, found);
  const auto stride = static_cast<Eigen::Index>(padded(static_cast<std::size_t>(length)));
  for (std::size_t k = 0; k < estimators.size(); ++k) {
    double expected = 0.0;
    for (int i = 0; i < problem.tasks(); ++i) {
      const Eigen::Index d = problem.task_dimensions[static_cast<std::size_t>(i)];
      const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> tokens(view.covariates + problem.block_begin(i) * stride,
                                                                     d, length, Eigen::OuterStride<>(stride));
      const Eigen::MatrixXd x = tokens;
      const Eigen::VectorXd q = Eigen::Map<const Eigen::VectorXd>(view.query + problem.block_begin(i), d);
      const double deviation = std::sqrt(problem.signal_power(i) / static_cast<double>(d));
      for (Eigen::Index j = 0; j < d; ++j) {
        const Eigen::VectorXd g = deviation * Eigen::VectorXd::Unit(d, j);
        expected += 0.5 * std::pow((estimate(estimators[k], problem, i, x, x.transpose() * g) - g).dot(q), 2);
      }
      for (Eigen::Index l = 0; l < length; ++l) {
        const Eigen::VectorXd eps = std::sqrt(noise) * Eigen::VectorXd::Unit(length, l);
        expected += 0.5 * std::pow(estimate(estimators[k], problem, i, x, eps).dot(q), 2);
      }
    }
    // Rounding through inverses: eps times the square of a condition number of at most about 1e3.
    BOOST_TEST(std::abs(found[k] - expected) <= 1e-9 * expected, estimators[k].name << " at L = " << length);
  }
}

LossEstimate plain_mean(const std::vector<double>& values) {
  double mean = 0.0;
  double square = 0.0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) square += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return {mean, std::sqrt(square / (n * (n - 1.0)))};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_estimators)

BOOST_AUTO_TEST_CASE(losses_are_those_of_the_definitions) {
  for (const int length : {1, 2, 9}) check_definition(length);
}

BOOST_AUTO_TEST_CASE(best_rates_are_minima) {
  // The loss is a parabola in eta: equal at both sides of its minimum, to rounding.
  const Problem problem = problems::uneven(Parametrisation::merged);
  for (const EstimatorKind kind : {EstimatorKind::gradient_step, EstimatorKind::debiased_gradient_step}) {
    Problem one = problem;
    one.task_dimensions = {4};
    one.signal_variance = {0.7};
    const double best = rate({"", kind}, one, 0);
    const double below = exact_loss({"", kind, best - 0.1}, one).value();
    const double above = exact_loss({"", kind, best + 0.1}, one).value();
    BOOST_TEST(std::abs(below - above) < 1e-14);
    BOOST_TEST(exact_loss({"", kind}, one).value() < below);
  }
}

BOOST_AUTO_TEST_CASE(skewed_covariances_keep_their_trace_and_fall_as_inverse_squares) {
  Problem problem;
  problem.task_dimensions = {3, 4};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 2000;
  Shift shift;
  shift.skewed_covariates = true;
  CovariateSampler sampler(problem, shift, 3);
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(7, 7);
  constexpr int contexts = 20;
  for (std::uint32_t c = 0; c < contexts; ++c) {
    const CovariateView view = sampler({1, Stream::evaluation, 1, c});
    const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> tokens(view.covariates, 7, 2000,
                                                                   Eigen::OuterStride<>(2000));
    covariance += tokens * tokens.transpose() / (2000.0 * contexts);
  }
  const double norm = 1.0 + 0.25 + 1.0 / 9.0 + 1.0 / 16.0;
  const Eigen::VectorXd found = covariance.bottomRightCorner(4, 4).selfadjointView<Eigen::Lower>().eigenvalues();
  for (int k = 1; k <= 4; ++k) {
    // A sample eigenvalue of n normals has the relative deviation sqrt(2/n).
    const double expected = 4.0 / (norm * k * k);
    BOOST_TEST(std::abs(found(4 - k) / expected - 1.0) < 4.5 * std::sqrt(2.0 / 40000.0));
  }
  // Blocks stay independent: covariances of unit scale have the standard error 1/sqrt(n) times both deviations (< 2).
  BOOST_TEST(covariance.topRightCorner(3, 4).cwiseAbs().maxCoeff() < 4.5 * 4.0 / std::sqrt(40000.0));
}

BOOST_AUTO_TEST_CASE(orthogonal_queries_are_orthogonal_and_keep_their_length) {
  Problem problem;
  problem.task_dimensions = {3, 4};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 5;
  Shift shift;
  shift.orthogonal_queries = true;
  CovariateSampler plain(problem, {}, 3);
  CovariateSampler sampler(problem, shift, 3);
  const StreamKey key{1, Stream::evaluation, 5, 9};
  const Eigen::VectorXd before = Eigen::Map<const Eigen::VectorXd>(plain(key).query, 7);
  const CovariateView view = sampler(key);
  const Eigen::Map<const Eigen::VectorXd> query(view.query, 7);
  BOOST_TEST(std::abs(query.norm() - before.norm()) < 1e-14 * before.norm() * 10);
  const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> tokens(view.covariates, 7, 5, Eigen::OuterStride<>(16));
  BOOST_TEST((tokens.transpose() * query).cwiseAbs().maxCoeff() < 1e-13);
  problem.context_length = 7;
  BOOST_CHECK_THROW(CovariateSampler(problem, shift, 3), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(given_covariates_have_the_loss_of_score_space) {
  // The same population loss from other normals, for dense weights whose keys read responses: |z| < 4.
  for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
    const Problem problem = problems::uneven(Parametrisation::split, rotation);
    const WeightLayout layout = WeightLayout::of(problem);
    const RotatedWeights weights(acting(layout, problems::dense_weights(layout, 0.4, 3)), rotations(problem));
    ScoreSpaceLoss loss(problem);
    CovariateSampler sampler(problem, {}, 0);
    std::vector<double> given;
    std::vector<double> drawn;
    for (std::uint32_t c = 0; c < 20000; ++c) {
      const StreamKey key{2, Stream::evaluation, 13, c};
      given.push_back(loss(weights, sampler(key), key));
      drawn.push_back(loss(weights, {3, Stream::evaluation, 0, c}));
    }
    const LossEstimate a = plain_mean(given);
    const LossEstimate b = plain_mean(drawn);
    BOOST_TEST(std::abs(a.loss - b.loss) < 4.0 * std::hypot(a.standard_error, b.standard_error));
  }
}

BOOST_AUTO_TEST_CASE(estimates_do_not_depend_on_threads, *boost::unit_test::label("parallel")) {
  const Problem problem = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(problem);
  std::vector<WeightGroup> groups{{"seeds", {}}};
  for (const std::uint64_t seed : {1U, 2U}) {
    groups[0].members.emplace_back(acting(layout, problems::dense_weights(layout, 0.3, seed)), rotations(problem));
  }
  std::vector<double> first;
  for (const int threads : {1, 3}) {
    ThreadTeam team(threads);
    PairedEvaluation paired(problem, {}, 1, 517, all_estimators(), groups, team);
    while (paired.advance()) {
    }
    std::vector<double> found;
    for (const PairedEstimate& estimate : paired.estimates()) {
      found.push_back(estimate.loss);
      found.push_back(estimate.standard_error());
    }
    if (first.empty()) first = found;
    BOOST_TEST(found == first, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(members_and_contexts_err_in_quadrature) {
  Problem problem = problems::uneven(Parametrisation::merged);
  const WeightLayout layout = WeightLayout::of(problem);
  std::vector<WeightGroup> groups{{"seeds", {}}};
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    groups[0].members.emplace_back(acting(layout, problems::dense_weights(layout, 0.3, seed)), rotations(problem));
  }
  ThreadTeam team(1);
  PairedEvaluation paired(problem, {}, 1, 100, {}, groups, team);
  while (paired.advance()) {
  }
  const PairedEstimate found = paired.estimates().at(0);
  CovariateSampler sampler(problem, {}, 1);
  ScoreSpaceLoss loss(problem);
  std::vector<double> of_member(3);
  std::vector<double> of_context;
  for (std::uint32_t c = 0; c < 100; ++c) {
    const StreamKey key{1, Stream::evaluation, 13, c};
    double mean = 0.0;
    for (std::size_t m = 0; m < 3; ++m) {
      const double own = loss(groups[0].members[m], sampler(key), key);
      mean += own / 3.0;
      of_member[m] += own / 100.0;
    }
    of_context.push_back(mean);
  }
  const LossEstimate contexts = plain_mean(of_context);
  const LossEstimate members = plain_mean(of_member);
  // Sums of a few hundred terms in another order.
  BOOST_TEST(std::abs(found.loss / contexts.loss - 1.0) < 1e-13);
  BOOST_TEST(std::abs(found.contexts_error / contexts.standard_error - 1.0) < 1e-11);
  BOOST_TEST(std::abs(found.members_error.value() / members.standard_error - 1.0) < 1e-11);
  BOOST_TEST(found.standard_error() == std::hypot(found.contexts_error, *found.members_error));
}

BOOST_AUTO_TEST_SUITE_END()
