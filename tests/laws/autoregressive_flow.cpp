// The two-parameter flow of autoregressive linear attention: closed forms, and the moments that they rest on.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/mesa/complex_attention.hpp"

using namespace iclflow;

namespace {

UnitarySequences sequences(TransitionKind kind, FirstState initial, int dimension = 4, int length = 12) {
  UnitarySequences s;
  s.kind = kind;
  s.dimension = dimension;
  s.length = length;
  s.initial = initial;
  s.initial_scale = 0.8;
  return s;
}

Eigen::VectorXd reduced_weights(const UnitarySequences& s, double a, double b) {
  const ComplexAttentionLayout layout{s.dimension};
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(layout.size());
  for (Eigen::Index j = 0; j < layout.d; ++j) {
    weights(layout.value(j, j)) = b;
    weights(layout.key_query(layout.d + j, j)) = a;
  }
  return weights;
}

/// Mean and standard error, entry by entry, over `count` independent samples of the gradient.
struct SampledGradient {
  Eigen::VectorXd mean;
  Eigen::VectorXd error;
  double loss = 0.0;
  double loss_error = 0.0;
};
SampledGradient sampled_gradient(const UnitarySequences& s, double a, double b, std::size_t each) {
  constexpr int samples = 40;
  const Eigen::VectorXd weights = reduced_weights(s, a, b);
  SampledGradient result{Eigen::VectorXd::Zero(weights.size()), Eigen::VectorXd::Zero(weights.size())};
  double loss_square = 0.0;
  for (std::uint32_t k = 0; k < samples; ++k) {
    const auto one = complex_attention_gradient(s, weights, 5, Stream::training, k, each, 1);
    result.mean += one.gradient / samples;
    result.error += one.gradient.cwiseAbs2() / samples;
    result.loss += one.loss / samples;
    loss_square += one.loss * one.loss / samples;
  }
  const double rest = samples - 1.0;
  result.error = ((result.error - result.mean.cwiseAbs2()).cwiseMax(0.0) / rest).cwiseSqrt();
  result.loss_error = std::sqrt(std::max(0.0, loss_square - result.loss * result.loss) / rest);
  return result;
}

/// Largest |mean - expected| over the standard error, over entries that are active (blocks of the reduction) or not.
double worst(const UnitarySequences& s, const SampledGradient& sampled, const Eigen::VectorXd& expected, bool active) {
  const ComplexAttentionLayout layout{s.dimension};
  Eigen::VectorXd is_active = reduced_weights(s, 1.0, 1.0);
  double largest = 0.0;
  for (Eigen::Index i = 0; i < layout.size(); ++i) {
    if ((is_active(i) != 0.0) != active) continue;
    const double off = std::abs(sampled.mean(i) - expected(i));
    // a law without spread in an entry leaves rounding only: sums of 1e5 numbers of order one
    largest = std::max(largest, off / (sampled.error(i) + 1e-13));
  }
  return largest;
}

/// -d ell / d entry of the active diagonals, from a' = b (A - B s), b' = a (A - B s).
Eigen::VectorXd expected_gradient(const UnitarySequences& s, double a, double b) {
  const ProductLoss loss = product_loss(s);
  const double force = loss.linear - loss.quadratic * a * b;
  return reduced_weights(s, -b * force, -a * force);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(autoregressive_flow)

// dopri5 at 1e-12 keeps a global error of a few hundred steps' local ones: 1e-8 is far above, and far below what a
// wrong formula would give.
BOOST_AUTO_TEST_CASE(flow_follows_its_closed_form_for_every_start) {
  const ProductLoss loss{0.7, 1.3, 2.1, 3.0};
  StepperOptions options;
  options.relative_tolerance = 1e-12;
  options.absolute_tolerance = 1e-14;
  std::vector<double> times;
  for (int k = 0; k <= 30; ++k) times.push_back(0.1 * k);
  const double starts[][2] = {{0.1, 0.1},  {-0.1, -0.1}, {0.5, 1.5},  {2.0, 2.0},  {1.5, 0.5},
                              {-0.3, 0.9}, {0.9, -0.3},  {-0.2, 0.2}, {1e-3, 0.4}, {0.0, 0.3}};
  for (const auto& start : starts) {
    const ProductFlow flow(loss, start[0], start[1]);
    const Outcome outcome = integrate(flow, times, options);
    BOOST_REQUIRE(outcome.status == Status::completed);
    const double imbalance = start[0] * start[0] - start[1] * start[1];
    for (std::size_t k = 0; k < times.size(); ++k) {
      const double s = outcome.trajectory["product"].values[k];
      const double a = outcome.trajectory["a"].values[k];
      const double b = outcome.trajectory["b"].values[k];
      BOOST_TEST(std::abs(s - product_at(loss, start[0], start[1], times[k])) < 1e-8,
                 "start " << start[0] << ", " << start[1] << " at " << times[k]);
      BOOST_TEST(std::abs(a * b - s) < 1e-12);
      BOOST_TEST(std::abs(a * a - b * b - imbalance) < 1e-12);
    }
    BOOST_TEST(std::abs(outcome.trajectory["a"].values[0] - start[0]) < 1e-12);
    BOOST_TEST(std::abs(outcome.trajectory["b"].values[0] - start[1]) < 1e-12);
  }
}

// A balanced start needs log(1 / s0) / (2 A): ten times smaller parameters shift the whole course by log(100) / (2 A).
BOOST_AUTO_TEST_CASE(plateau_grows_with_the_logarithm_of_the_start) {
  const ProductLoss loss{0.7, 1.3, 2.1, 1.0};
  const double half = 0.5 * loss.limit();
  double before = *time_of_product(loss, 1e-2, half);
  for (const double start : {1e-4, 1e-6, 1e-8}) {
    const double now = *time_of_product(loss, start, half);
    BOOST_TEST(std::abs(product_at(loss, std::sqrt(start), std::sqrt(start), now) - half) < 1e-12);
    // log(A/(B s0) - 1) differs from log(A/(B s0)) by B s0 / A
    BOOST_TEST(std::abs(now - before - std::log(100.0) / (2.0 * loss.linear)) < 2e2 * start);
    before = now;
  }
}

BOOST_AUTO_TEST_CASE(ends_at_the_limit_also_after_times_that_overflow) {
  const ProductLoss loss{0.0, 300.0, 1500.0, 1.0};
  for (const double b : {0.1, 0.4}) {
    BOOST_TEST(std::abs(product_at(loss, 0.1, b, 1e6) - loss.limit()) < 1e-14);
    BOOST_TEST(std::abs(product_at(loss, -0.1, b == 0.1 ? 0.1 : b, 0.0) + 0.1 * b) < 1e-15);
  }
}

// Finite differences of the loss on the same sequences. The loss is a polynomial of degree two in any one parameter:
// central differences with any step are exact up to rounding, 1e-15 of the loss over the step.
BOOST_AUTO_TEST_CASE(gradient_of_all_parameters_is_that_of_the_loss) {
  for (const TransitionKind kind : {TransitionKind::unitary, TransitionKind::rotation}) {
    const UnitarySequences s = sequences(kind, FirstState::normal, 2, 6);
    const ComplexAttentionLayout layout{s.dimension};
    Eigen::VectorXd weights(layout.size());
    for (Eigen::Index i = 0; i < weights.size(); ++i) weights(i) = 0.6 * std::sin(1.0 + 3.7 * static_cast<double>(i));
    const auto loss = [&](const Eigen::VectorXd& at) {
      return complex_attention_gradient(s, at, 3, Stream::training, 0, 19, 1).loss;
    };
    const auto at = complex_attention_gradient(s, weights, 3, Stream::training, 0, 19, 1);
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      constexpr double step = 0.125;
      Eigen::VectorXd moved = weights;
      moved(i) += step;
      const double up = loss(moved);
      moved(i) -= 2.0 * step;
      BOOST_TEST(std::abs((up - loss(moved)) / (2.0 * step) - at.gradient(i)) < 1e-13 * (1.0 + std::abs(up)) / step);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradient_does_not_depend_on_threads) {
  const UnitarySequences s = sequences(TransitionKind::unitary, FirstState::normal);
  const Eigen::VectorXd weights = reduced_weights(s, 0.4, 0.7);
  const auto one = complex_attention_gradient(s, weights, 3, Stream::training, 0, 100, 1);
  const auto three = complex_attention_gradient(s, weights, 3, Stream::training, 0, 100, 3);
  BOOST_TEST(one.loss == three.loss);
  BOOST_TEST((one.gradient == three.gradient));
}

// Sampled gradient at (a I, b I): the active diagonals have that of the two-parameter loss, all else none. 5 standard
// errors over some 200 entries (of them 12 d^2 = 192, real and imaginary): a false alarm has probability 1e-4.
BOOST_AUTO_TEST_CASE(complex_parameters_stay_on_the_two_parameter_set) {
  for (const FirstState law : {FirstState::normal, FirstState::uniform, FirstState::signs, FirstState::sparse}) {
    const UnitarySequences s = sequences(TransitionKind::unitary, law);
    const SampledGradient sampled = sampled_gradient(s, 0.7, 1.1, 400);
    const Eigen::VectorXd expected = expected_gradient(s, 0.7, 1.1);
    BOOST_TEST(worst(s, sampled, expected, true) < 5.0);
    BOOST_TEST(worst(s, sampled, expected, false) < 5.0);
    BOOST_TEST(std::abs(sampled.loss - product_loss(s).value(0.77)) < 5.0 * sampled.loss_error + 1e-12);
  }
}

// Real rotations: the same for the two blocks, with other constants; but other blocks have a gradient (of relative
// order h) that no sampling explains.
BOOST_AUTO_TEST_CASE(real_rotations_leave_the_two_parameter_set) {
  for (const FirstState law : {FirstState::normal, FirstState::uniform, FirstState::signs, FirstState::sparse}) {
    const UnitarySequences s = sequences(TransitionKind::rotation, law);
    const SampledGradient sampled = sampled_gradient(s, 0.7, 1.1, 3200);
    const Eigen::VectorXd expected = expected_gradient(s, 0.7, 1.1);
    BOOST_TEST(worst(s, sampled, expected, true) < 5.0);
    BOOST_TEST(worst(s, sampled, expected, false) > 10.0);
    BOOST_TEST(std::abs(sampled.loss - product_loss(s).value(0.77)) < 5.0 * sampled.loss_error + 1e-12);
  }
}

// Gaussian states: a b -> 1/(5 sigma^2) for complex, 1/(3 sigma^2) for rotations, up to (number of coordinates) log
// T/T; sparse states: exact, for rotations up to log T / T.
BOOST_AUTO_TEST_CASE(limits_of_long_sequences) {
  const auto ratio = [](TransitionKind kind, FirstState law) {
    const UnitarySequences s = sequences(kind, law, 4, 1000000);
    return mean_ratio(s, product_loss(s).limit());
  };
  // 3 (d - 1) h / 5 and (d + 1) h / 3 relative, h = 14.4e-6
  BOOST_TEST(std::abs(ratio(TransitionKind::unitary, FirstState::normal) - 0.2) < 0.2 * 3e-5);
  BOOST_TEST(std::abs(ratio(TransitionKind::rotation, FirstState::normal) - 1.0 / 3.0) < 3e-5);
  BOOST_TEST(std::abs(ratio(TransitionKind::unitary, FirstState::sparse) - 1.0) < 1e-14);
  BOOST_TEST(std::abs(ratio(TransitionKind::rotation, FirstState::sparse) - 1.0) < 3e-5);
  const UnitarySequences sparse = sequences(TransitionKind::unitary, FirstState::sparse);
  const ProductLoss loss = product_loss(sparse);
  BOOST_TEST(std::abs(loss.value(loss.limit())) < 1e-14 * loss.value(0.0));
}

BOOST_AUTO_TEST_SUITE_END()
