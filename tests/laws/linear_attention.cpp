// The reductions of linear attention: closed forms against the population flow, the flow against sampled moments.
#include "iclflow/spectral/linear_attention.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/regression/linear_simulation.hpp"

using namespace iclflow;

namespace {

LinearContexts contexts(std::vector<double> covariance, int length) {
  LinearContexts c;
  c.covariance = Eigen::Map<const Eigen::VectorXd>(covariance.data(), static_cast<Eigen::Index>(covariance.size()));
  c.length = length;
  return c;
}

StepperOptions precise() {
  StepperOptions options;
  options.relative_tolerance = 1e-12;
  options.absolute_tolerance = 1e-16;
  return options;
}

std::vector<double> times(double last, int samples) {
  std::vector<double> all;
  for (int k = 0; k <= samples; ++k) all.push_back(last * k / samples);
  return all;
}

/// Numbers of order `scale` without any symmetry.
Eigen::VectorXd scattered(Eigen::Index size, double scale) {
  Eigen::VectorXd x(size);
  for (Eigen::Index i = 0; i < size; ++i) x(i) = scale * std::sin(1.0 + 3.7 * static_cast<double>(i * i % 101));
  return x;
}

/// Time at which modes[0] of the flow passes half of the limit.
double half_time(const LinearContexts& c, const LinearAttentionLayout& layout, const Eigen::VectorXd& start,
                 double last) {
  const LinearAttentionFlow flow(c, layout, start);
  const Event half{"modes[0]", 0.5 * linear_attention_limit(c)(0), Direction::rising, false};
  const Outcome outcome = integrate(flow, {0.0, last}, precise(), {half});
  BOOST_REQUIRE(outcome.trajectory.events.size() == 1U);
  return outcome.trajectory.events[0].time;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_attention)

// The loss is a polynomial of degree two in any one weight: central differences are exact but for rounding, 1e-15 of
// the loss over the step.
BOOST_AUTO_TEST_CASE(flow_descends_the_population_loss) {
  const LinearContexts c = contexts({1.5, 0.7, 0.3}, 9);
  for (const bool split : {false, true}) {
    const LinearAttentionLayout layout{split, 2, 3};
    const Eigen::VectorXd at = scattered(layout.size(), 0.8);
    Eigen::VectorXd rate;
    LinearAttentionFlow(c, layout, at).velocity(at, rate);
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      constexpr double step = 0.125;
      Eigen::VectorXd moved = at;
      moved(i) += step;
      const double up = linear_attention_loss(c, acting_matrix(layout, moved));
      moved(i) -= 2.0 * step;
      const double slope = (up - linear_attention_loss(c, acting_matrix(layout, moved))) / (2.0 * step);
      BOOST_TEST(std::abs(slope + rate(i)) < 1e-14 * (1.0 + up) / step);
    }
  }
}

// Sampled loss and gradient of all parameters on the reduced set: the population's where they are reduced, zero
// elsewhere. 5 standard errors for some 100 entries.
BOOST_AUTO_TEST_CASE(sampled_contexts_have_the_population_gradient) {
  const LinearContexts c = contexts({1.5, 0.7, 0.3}, 9);
  for (const bool split : {false, true}) {
    const FullLinearLayout full{split, 2, 3};
    const LinearAttentionLayout layout = full.reduced();
    const Eigen::VectorXd at = scattered(layout.size(), 0.8);
    const Eigen::VectorXd weights = embed_linear(full, at);
    BOOST_TEST((project_linear(full, weights) == at));
    Eigen::VectorXd rate;
    LinearAttentionFlow(c, layout, at).velocity(at, rate);
    const Eigen::VectorXd expected = -embed_linear(full, rate);
    constexpr int samples = 40;
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(full.size());
    Eigen::VectorXd square = Eigen::VectorXd::Zero(full.size());
    double loss = 0.0;
    double loss_square = 0.0;
    for (std::uint32_t k = 0; k < samples; ++k) {
      const LinearGradient one = linear_gradient(c, full, weights, {7, Stream::training, k, 0}, 2000, 1);
      mean += one.gradient / samples;
      square += one.gradient.cwiseAbs2() / samples;
      loss += one.loss / samples;
      loss_square += one.loss * one.loss / samples;
    }
    const Eigen::VectorXd error = ((square - mean.cwiseAbs2()) / (samples - 1.0)).cwiseSqrt();
    const double loss_error = std::sqrt((loss_square - loss * loss) / (samples - 1.0));
    BOOST_TEST((mean - expected).cwiseQuotient(error).cwiseAbs().maxCoeff() < 5.0);
    BOOST_TEST(error.maxCoeff() < 0.05 * expected.cwiseAbs().maxCoeff());
    BOOST_TEST(std::abs(loss - linear_attention_loss(c, acting_matrix(layout, at))) < 5.0 * loss_error);
  }
}

// Of all full parameters, on the same contexts: degree two again.
BOOST_AUTO_TEST_CASE(full_gradient_is_that_of_the_sampled_loss) {
  const LinearContexts c = contexts({1.5, 0.7}, 5);
  for (const bool split : {false, true}) {
    const FullLinearLayout full{split, 2, 2};
    const Eigen::VectorXd at = scattered(full.size(), 0.6);
    const StreamKey key{3, Stream::training, 0, 0};
    const LinearGradient exact = linear_gradient(c, full, at, key, 30, 1);
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      constexpr double step = 0.125;
      Eigen::VectorXd moved = at;
      moved(i) += step;
      const double up = linear_gradient(c, full, moved, key, 30, 1).loss;
      moved(i) -= 2.0 * step;
      const double slope = (up - linear_gradient(c, full, moved, key, 30, 1).loss) / (2.0 * step);
      BOOST_TEST(std::abs(slope - exact.gradient(i)) < 1e-13 * (1.0 + up) / step);
    }
  }
}

BOOST_AUTO_TEST_CASE(full_gradient_does_not_depend_on_threads) {
  const LinearContexts c = contexts({1.5, 0.7}, 5);
  const FullLinearLayout full{true, 2, 2};
  const Eigen::VectorXd at = scattered(full.size(), 0.6);
  const LinearGradient one = linear_gradient(c, full, at, {3, Stream::training, 0, 0}, 500, 1);
  const LinearGradient three = linear_gradient(c, full, at, {3, Stream::training, 0, 0}, 500, 3);
  BOOST_TEST(one.loss == three.loss);
  BOOST_TEST((one.gradient == three.gradient));
}

// dopri5 at 1e-12: 1e-8 is far above its error and far below that of a wrong formula.
BOOST_AUTO_TEST_CASE(merged_white_flow_is_a_sigmoid) {
  for (const double lambda : {1.0, 0.6}) {
    const LinearContexts c = contexts({lambda, lambda, lambda, lambda}, 31);
    const LinearAttentionLayout layout{false, 3, 4};
    const Eigen::VectorXd start = aligned_linear_start(c, layout, 1e-3);
    const double p0 = white_product(layout, start);
    BOOST_TEST(std::abs(p0 - 3e-6) < 1e-18);  // H scale^2
    const std::vector<double> at = times(12.0 / (lambda * lambda), 60);
    const Outcome outcome = integrate(LinearAttentionFlow(c, layout, start), at, precise());
    const ProductLoss loss = white_product_loss(c);
    for (std::size_t k = 0; k < at.size(); ++k) {
      const double p = product_at(loss, std::sqrt(p0), std::sqrt(p0), at[k]);
      BOOST_TEST(std::abs(outcome.trajectory["loss"].values[k] - loss.value(p)) < 1e-8);
      BOOST_TEST(std::abs(outcome.trajectory["modes"].at(k)[2] - 0.5 * p) < 1e-8);
    }
    BOOST_TEST(std::abs(outcome.trajectory["loss"].last()[0] - visited_losses(c).back()) < 1e-8);
  }
}

// From a start that is not aligned the time differs by the order of its size, and a start a hundred times smaller waits
// log(100) / sqrt(D) longer.
BOOST_AUTO_TEST_CASE(merged_plateau_is_the_logarithm_of_any_small_start) {
  const LinearContexts c = contexts({1.0, 1.0, 1.0, 1.0}, 31);
  const LinearAttentionLayout layout{false, 2, 4};
  double before = 0.0;
  for (const double scale : {1e-3, 1e-5}) {
    const Eigen::VectorXd start = scattered(layout.size(), scale);
    const ProductLoss loss = white_product_loss(c);
    const double p0 = white_product(layout, start);
    const double now = half_time(c, layout, start, 20.0);
    BOOST_TEST(std::abs(now - *time_of_product(loss, p0, 0.5 * loss.limit())) < 20.0 * scale);
    if (before > 0.0) BOOST_TEST(std::abs(now - before - 0.5 * std::log(100.0)) < 20.0 * 1e-3);
    before = now;
  }
  // the rate is |Lambda^2| for any covariance: a start of relative size w waits log(1/w) / |Lambda^2|
  const LinearContexts unequal = contexts({1.2, 0.9, 0.5, 0.2}, 31);
  const double growth = unequal.covariance.cwiseAbs2().norm();
  const auto wait = [&](double scale) {
    return half_time(unequal, layout, aligned_linear_start(unequal, layout, scale), 60.0);
  };
  // the smaller start is on the unstable manifold of the origin up to its size squared
  BOOST_TEST(std::abs(wait(1e-6) - wait(1e-4) - std::log(100.0) / growth) < 1e-6);
}

BOOST_AUTO_TEST_CASE(split_modes_follow_their_implicit_time) {
  const LinearContexts c = contexts({0.8, 1.6, 0.4}, 31);
  const LinearAttentionLayout layout{true, 4, 3};  // two heads on the first mode
  const double start = 0.05;
  const LinearAttentionFlow flow(c, layout, aligned_linear_start(c, layout, start));
  const int heads_of[] = {2, 1, 1};
  for (Eigen::Index mode = 0; mode < 3; ++mode) {
    const int n = heads_of[mode];
    const double limit = split_limit(c, mode, n);
    BOOST_TEST(std::abs(n * limit * limit * limit - linear_attention_limit(c)(mode)) < 1e-14);
    const double v = 0.7 * limit;
    const double expected = *split_time(c, mode, n, start, v);
    const Event passed{"modes[" + std::to_string(mode) + "]", n * v * v * v, Direction::rising, false};
    const Outcome outcome = integrate(flow, {0.0, 1.1 * expected}, precise(), {passed});
    BOOST_REQUIRE(outcome.trajectory.events.size() == 1U);
    BOOST_TEST(std::abs(outcome.trajectory.events[0].time - expected) < 1e-8 * expected);
  }
  BOOST_TEST(!split_time(c, 0, 2, start, split_limit(c, 0, 2)).has_value());
}

// From a random start: no head is aligned, yet the loss rests at each of the predicted losses in turn. A rest is the
// flattest moment of the loss (log time) between two falls; the next mode is then as small as the start, relative size
// scale^3 of the loss, and the previous one has exponentially little left.
BOOST_AUTO_TEST_CASE(split_flow_rests_at_the_visited_losses) {
  const LinearContexts c = contexts({1.6, 0.7, 0.3}, 31);
  const LinearAttentionLayout layout{true, 3, 3};
  const LinearAttentionFlow flow(c, layout, scattered(layout.size(), 2e-3));
  std::vector<double> at{0.0};
  for (int k = 0; k <= 3000; ++k) at.push_back(10.0 * std::exp(k * 0.003));
  StepperOptions options;
  options.absolute_tolerance = 1e-14;
  const Outcome outcome = integrate(flow, at, options);
  BOOST_REQUIRE(outcome.status == Status::completed);
  const std::vector<double>& loss = outcome.trajectory["loss"].values;
  for (const double level : visited_losses(c)) {
    // steepness d loss / d log t where the loss passes the level
    double nearest = 1.0;
    double steepness = 1.0;
    for (std::size_t k = 2; k + 1 < loss.size(); ++k) {
      const double slope = (loss[k - 1] - loss[k + 1]) / 0.006;
      if (std::abs(loss[k] - level) < 0.01 * loss[0]) steepness = std::min(steepness, slope);
      nearest = std::min(nearest, std::abs(loss[k] - level));
    }
    BOOST_TEST(nearest < 0.005 * loss[0], "loss " << level);
    BOOST_TEST(steepness < 0.02 * loss[0], "loss " << level);
  }
}

// One head from a balanced start ends at U = Gamma^-1 / v, v^2 = |U| = |Gamma^-1|   theory: eq:one-head-limit
BOOST_AUTO_TEST_CASE(one_merged_head_ends_at_the_inverse_of_gamma) {
  const LinearContexts c = contexts({1.5, 0.7, 0.3}, 9);
  const LinearAttentionLayout layout{false, 1, 3};
  const LinearAttentionFlow flow(c, layout, aligned_linear_start(c, layout, 0.1));
  const Eigen::VectorXd end = integrate(flow, {0.0, 400.0}, precise()).last.state;
  const Eigen::ArrayXd gamma = (1.0 + 1.0 / 9.0) * c.covariance.array() + c.covariance.sum() / 9.0;
  const double v = std::pow(gamma.square().inverse().sum(), 0.25);
  BOOST_TEST(std::abs(end(0) - v) < 1e-8);
  const Eigen::MatrixXd expected = (gamma.inverse() / v).matrix().asDiagonal();
  BOOST_TEST((key_query(layout, end, 0) - expected).cwiseAbs().maxCoeff() < 1e-8);
}

BOOST_AUTO_TEST_CASE(differences_of_squares_are_conserved) {
  const LinearContexts c = contexts({1.5, 0.7, 0.3}, 9);
  for (const bool split : {false, true}) {
    const LinearAttentionLayout layout{split, 2, 3};
    const Eigen::VectorXd start = scattered(layout.size(), 0.5);
    const LinearAttentionFlow flow(c, layout, start);
    const Eigen::VectorXd end = integrate(flow, {0.0, 5.0}, precise()).last.state;
    BOOST_TEST((end - start).norm() > 0.1);
    const auto conserved = [&](const Eigen::VectorXd& y, int h) {
      const Eigen::VectorXd own = y.segment(h * layout.head_size(), layout.head_size());
      const double rest = split ? own.segment(1, 3).squaredNorm() : own.tail(9).squaredNorm();
      return own(0) * own(0) - rest;
    };
    for (int h = 0; h < 2; ++h) BOOST_TEST(std::abs(conserved(end, h) - conserved(start, h)) < 1e-9);
  }
}

BOOST_AUTO_TEST_SUITE_END()
