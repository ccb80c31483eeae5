#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <tuple>

#include "iclflow/attention/token_estimator.hpp"
#include "support/plain_model.hpp"
#include "support/problems.hpp"

using namespace iclflow;

using Precisions = std::tuple<float, double>;

BOOST_AUTO_TEST_SUITE(attention_gradient)

namespace {

constexpr StreamKey key{11, Stream::training, 4, 0};
constexpr std::uint32_t contexts = 37;

/// Two correct double-precision evaluations of sums of about 10^3 terms of order one.
constexpr double rounding = 1e-12;

template <typename T>
Eigen::VectorXd fast_gradient(const Problem& problem, const WeightLayout& layout, const Eigen::VectorXd& weights,
                              int threads, double* loss = nullptr) {
  ThreadTeam team(threads);
  TokenEstimator<T> estimator(problem, layout, team);
  const auto mean = estimator(acting(layout, weights), key, contexts);
  if (loss != nullptr) *loss = mean.loss;
  Eigen::VectorXd gradient;
  pull_back(layout, weights, mean.gradient, gradient);
  return gradient;
}

void check_against_plain(const Problem& problem, const WeightLayout& layout) {
  const Eigen::VectorXd weights = problems::dense_weights(layout, 0.4, 3);
  const auto samples = plain::draw(problem, key, contexts);
  double loss = 0.0;
  const Eigen::VectorXd gradient = fast_gradient<double>(problem, layout, weights, 1, &loss);
  BOOST_TEST(std::abs(loss - plain::loss(layout, weights, samples)) < rounding * loss);
  const Eigen::VectorXd expected = plain::gradient(layout, weights, samples);
  BOOST_TEST(expected.norm() > 0.1);
  BOOST_TEST((gradient - expected).norm() < rounding * expected.norm());
}

}  // namespace

BOOST_AUTO_TEST_CASE(merged_equals_the_plain_model) {
  for (const Rotation rotation : {Rotation::identity, Rotation::random}) {
    const Problem p = problems::uneven(Parametrisation::merged, rotation);
    check_against_plain(p, WeightLayout::of(p));
  }
}

BOOST_AUTO_TEST_CASE(split_equals_the_plain_model_at_any_embedding) {
  const Problem p = problems::uneven(Parametrisation::split);
  for (const int e : {3, 7, 11}) {
    WeightLayout layout = WeightLayout::of(p);
    layout.embedding = e;
    check_against_plain(p, layout);
  }
}

BOOST_AUTO_TEST_CASE(five_heads_run_through_every_head_group) {
  Problem p = problems::uneven(Parametrisation::split);
  for (const int heads : {1, 2, 4, 5}) {
    p.heads = heads;
    check_against_plain(p, WeightLayout::of(p));
  }
}

BOOST_AUTO_TEST_CASE(gradient_agrees_with_central_differences) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = problems::dense_weights(layout, 0.4, 3);
  const auto samples = plain::draw(p, key, contexts);
  const Eigen::VectorXd gradient = fast_gradient<double>(p, layout, weights, 1);
  // Truncation h^2/6 f''' with f''' of order one, rounding 1e-15 / h: h = 1e-5 makes both about 1e-10.
  constexpr double h = 1e-5;
  for (Eigen::Index k = 0; k < weights.size(); k += 5) {
    Eigen::VectorXd up = weights;
    Eigen::VectorXd down = weights;
    up(k) += h;
    down(k) -= h;
    const double slope = (plain::loss(layout, up, samples) - plain::loss(layout, down, samples)) / (2 * h);
    BOOST_TEST(std::abs(slope - gradient(k)) < 1e-8);
  }
}

BOOST_AUTO_TEST_CASE(queries_response_columns_have_no_gradient) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = problems::dense_weights(layout, 0.4, 3);
  const Eigen::VectorXd gradient = fast_gradient<double>(p, layout, weights, 1);
  for (int h = 0; h < p.heads; ++h) BOOST_TEST(head(layout, gradient, h).q.rightCols(p.tasks()).norm() == 0.0);
}

BOOST_AUTO_TEST_CASE(single_precision_follows_double_on_given_contexts) {
  // The two precisions draw different contexts, so compare the pass itself on one context.
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const ActingWeights blocks = acting(layout, problems::dense_weights(layout, 0.4, 3));
  const ContextSampler<float> sampler(p);
  auto narrow = sampler.empty();
  auto scratch = sampler.scratch();
  Context<double> wide(narrow.dimension, narrow.tasks, narrow.length);
  PackedWeights<float> narrow_weights(layout), narrow_slope(layout);
  PackedWeights<double> wide_weights(layout), wide_slope(layout);
  narrow_weights.set(blocks);
  wide_weights.set(blocks);
  TokenPass<float> narrow_scratch(narrow_weights, narrow.length, padded(narrow.dimension));
  TokenPass<double> wide_scratch(wide_weights, wide.length, padded(wide.dimension));
  double narrow_loss = 0.0;
  double wide_loss = 0.0;
  for (std::uint32_t c = 0; c < contexts; ++c) {
    sampler.draw({key.seed, key.stream, key.step, c}, narrow, scratch);
    for (std::size_t k = 0; k < (narrow.dimension + narrow.tasks) * narrow.stride; ++k)
      wide.tokens[k] = static_cast<double>(narrow.tokens[k]);
    for (std::size_t k = 0; k < narrow.dimension; ++k) wide.query[k] = static_cast<double>(narrow.query[k]);
    for (std::size_t k = 0; k < narrow.tasks; ++k) wide.target[k] = static_cast<double>(narrow.target[k]);
    narrow_loss += narrow_scratch(narrow_weights, narrow, narrow_slope);
    wide_loss += wide_scratch(wide_weights, wide, wide_slope);
  }
  const ActingWeights narrow_gradient = narrow_slope.unpacked();
  const ActingWeights wide_gradient = wide_slope.unpacked();
  // Rounding of float, 6e-8, through sums of some hundred terms of like size and a condition number of order ten.
  BOOST_TEST(std::abs(narrow_loss - wide_loss) < 1e-5 * wide_loss);
  for (std::size_t h = 0; h < narrow_gradient.key_query.size(); ++h) {
    BOOST_TEST((narrow_gradient.key_query[h] - wide_gradient.key_query[h]).norm() <
               1e-4 * wide_gradient.key_query[h].norm());
    BOOST_TEST((narrow_gradient.output_value[h] - wide_gradient.output_value[h]).norm() <
               1e-4 * wide_gradient.output_value[h].norm());
  }
}

// What an overflow leaves in scratch memory must not reach the next gradient: an integrator tries such steps and comes
// back. Every length modulo the padding, since what lies between tokens and padding differs.
BOOST_AUTO_TEST_CASE_TEMPLATE(an_overflow_is_forgotten, T, Precisions) {
  for (int length = 1; length <= 33; ++length) {
    Problem p = problems::uneven(Parametrisation::split);
    p.context_length = length;
    const WeightLayout layout = WeightLayout::of(p);
    const ActingWeights usual = acting(layout, problems::dense_weights(layout, 0.4, 3));
    ActingWeights huge = usual;
    huge *= static_cast<double>(std::numeric_limits<T>::max()) / 4.0;
    ThreadTeam team(1);
    TokenEstimator<T> fresh(p, layout, team);
    TokenEstimator<T> used(p, layout, team);
    BOOST_TEST(!std::isfinite(used(huge, key, contexts).loss));
    const auto expected = fresh(usual, key, contexts);
    const auto found = used(usual, key, contexts);
    BOOST_TEST(found.loss == expected.loss);
    BOOST_TEST((found.gradient.key_query[0] == expected.gradient.key_query[0]));
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_bits, *boost::unit_test::label("parallel")) {
  const Problem p = problems::uneven(Parametrisation::split, Rotation::random);
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = problems::dense_weights(layout, 0.4, 3);
  const Eigen::VectorXd one = fast_gradient<double>(p, layout, weights, 1);
  for (const int threads : {2, 3, 7}) {
    BOOST_TEST((fast_gradient<double>(p, layout, weights, threads).array() == one.array()).all());
  }
}

BOOST_AUTO_TEST_CASE(pull_back_is_the_derivative_of_acting) {
  const Problem p = problems::uneven(Parametrisation::split);
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd weights = problems::dense_weights(layout, 1.0, 8);
  const Eigen::VectorXd direction = problems::dense_weights(layout, 1.0, 9);
  ActingWeights slope = acting(layout, problems::dense_weights(layout, 1.0, 10));
  Eigen::VectorXd gradient;
  pull_back(layout, weights, slope, gradient);
  // acting() is bilinear in the factors: a central difference of <slope, acting> is exact up to rounding / h.
  constexpr double h = 1e-3;
  const auto inner = [&](double t) {
    const ActingWeights at = acting(layout, weights + t * direction);
    double sum = 0.0;
    for (std::size_t k = 0; k < at.key_query.size(); ++k) {
      sum += at.key_query[k].cwiseProduct(slope.key_query[k]).sum() +
             at.output_value[k].cwiseProduct(slope.output_value[k]).sum();
    }
    return sum;
  };
  const double numeric = (inner(h) - inner(-h)) / (2 * h);
  BOOST_TEST(std::abs(gradient.dot(direction) - numeric) < 1e-9 * gradient.norm() * direction.norm());
}

BOOST_AUTO_TEST_SUITE_END()
