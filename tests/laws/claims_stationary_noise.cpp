// At rest the excess loss of descent is (eta/batch) tr(C)/4: C the covariance of one context's gradient at the minimum.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/analysis/late_mean.hpp"
#include "iclflow/analysis/power_law.hpp"
#include "support/both.hpp"

using namespace iclflow;

namespace {

/// One head, one task, merged: the limit is a minimum, and no factors' scales wander.
Problem one_task() {
  Problem p;
  p.heads = 1;
  p.task_dimensions = {4};
  p.signal_variance = {1.0};
  p.context_length = 20;
  p.noise_variance = 0.1;
  p.parametrisation = Parametrisation::merged;
  return p;
}

/// Minimum of the true loss over mu and omega: as in experiments/claims/stationary-noise.toml, where the
/// sampled closure comes to rest. An error of 0.01 costs 2e-6 in loss.
InitialState minimum(const Problem& p) {
  return balanced_start(p, Matrix::Constant(1, 1, 1.0745), Matrix::Constant(1, 1, 0.7251));
}

SimulationOptions options_of(int batch) {
  SimulationOptions options;
  options.batch = batch;
  options.evaluation_contexts = 10000;
  options.precision = Precision::single_precision;
  return options;
}

std::vector<std::uint64_t> seeds(std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t seed = 1; seed <= count; ++seed) all.push_back(seed);
  return all;
}

/// Excess over the loss at the minimum on the same evaluation contexts, mean over the last half of the samples.
Estimate excess(double rate, int batch) {
  const Problem p = one_task();
  const DynamicsResult run =
      both::simulation(p, minimum(p), both::linear_times(160.0, 160), rate, options_of(batch), seeds(8));
  Estimate late = late_mean(run, "loss");
  late.value -= run.members.front()["loss"].at(0)[0];
  return late;
}

/// tr(C)/4 from single steps of one context each, and its standard error.
Estimate quarter_trace() {
  const Problem p = one_task();
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd start = embed(p, rotations(p), minimum(p));
  constexpr double rate = 0.5;
  SimulationOptions options = options_of(1);
  options.evaluation_contexts = 1;
  std::vector<double> squares;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    options.seed = seed;
    const Outcome outcome = descend(*make_descent(p, layout, start, options), rate, {0.0, rate});
    squares.push_back(0.25 * (outcome.last.state - start).squaredNorm() / (rate * rate));
  }
  return mean_estimate(squares);
}

double in_errors(double difference, const Estimate& a, const Estimate& b) {
  return difference / std::hypot(a.standard_error.value(), b.standard_error.value());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_stationary_noise)

BOOST_AUTO_TEST_CASE(excess_is_proportional_to_rate_over_batch, *boost::unit_test::label("slow")) {
  std::vector<double> ratio, value, error;
  for (const auto& [rate, batch] : std::vector<std::pair<double, int>>{{0.04, 8}, {0.04, 32}, {0.02, 64}, {0.08, 16}}) {
    const Estimate own = excess(rate, batch);
    ratio.push_back(rate / batch);
    value.push_back(own.value);
    error.push_back(own.standard_error.value());
  }
  const PowerLaw law = fit_power_law(ratio, value, error);
  BOOST_TEST_CONTEXT("exponent " << law.exponent << "(" << law.exponent_standard_error << "), probability "
                                 << law.probability) {
    // the next order, eta times half the curvature, is 0.02 at most between these points
    BOOST_TEST(std::abs(law.exponent - 1.0) < 0.02 + 4.0 * law.exponent_standard_error);
    for (const double wrong : {0.5, 2.0}) {
      BOOST_TEST(std::abs(law.exponent - wrong) > 0.02 + 4.0 * law.exponent_standard_error);
    }
    BOOST_TEST(law.probability > 1e-4);  // one law for both rates: it is the ratio that counts
  }
  // The size as well: tr(C)/4.
  const Estimate predicted = quarter_trace();
  const Estimate seen{value[1] / ratio[1], error[1] / ratio[1]};
  BOOST_TEST_CONTEXT("tr C / 4 = " << predicted.value << ", seen " << seen.value) {
    const double allowed = 0.05 * predicted.value;  // eta times half the curvature and the cubic terms
    BOOST_TEST(std::abs(in_errors(std::max(0.0, std::abs(seen.value - predicted.value) - allowed), seen, predicted)) <
               4.0);
    BOOST_TEST(in_errors(std::abs(seen.value - 2.0 * predicted.value) - allowed, seen, predicted) > 4.0);
    BOOST_TEST(in_errors(std::abs(seen.value - 0.5 * predicted.value) - allowed, seen, predicted) > 4.0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
