// Leakage off the spectral manifold: zero at a decomposable start, and sampling noise along a run: of zero mean, hence
// falling as batch^-1/2.
#include <boost/math/special_functions/gamma.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/analysis/late_mean.hpp"
#include "iclflow/analysis/power_law.hpp"
#include "support/both.hpp"

using namespace iclflow;

namespace {

Problem small_problem() {
  Problem p;
  p.heads = 2;
  p.task_dimensions = {3, 3};
  p.signal_variance = {1.0, 1.0};
  p.context_length = 30;
  p.noise_variance = 0.1;
  return p;
}

/// Entries of all heads that the reduction says are zero: off-diagonal XX, YX, off-diagonal U_Y, U_X.
std::vector<double> leaking_entries(const WeightLayout& layout, const Eigen::VectorXd& weights) {
  const ActingWeights blocks = acting(layout, weights);
  std::vector<double> entries;
  for (std::size_t h = 0; h < blocks.key_query.size(); ++h) {
    const Matrix& keys = blocks.key_query[h];
    for (Eigen::Index i = 0; i < keys.rows(); ++i) {
      for (Eigen::Index j = 0; j < keys.cols(); ++j) {
        if (i != j) entries.push_back(keys(i, j));
      }
    }
    const Matrix& values = blocks.output_value[h];
    for (Eigen::Index i = 0; i < values.rows(); ++i) {
      for (Eigen::Index j = 0; j < values.cols(); ++j) {
        if (j != i + layout.dimension) entries.push_back(values(i, j));
      }
    }
  }
  return entries;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(leakage)

BOOST_AUTO_TEST_CASE(falls_as_the_inverse_root_of_the_batch, *boost::unit_test::label("slow")) {
  const Problem p = small_problem();
  const InitialState start = aligned_start(p, 0.2, 2.0);
  SimulationOptions options;
  options.evaluation_contexts = 10;
  options.precision = Precision::single_precision;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) seeds.push_back(seed);
  const std::vector<double> batches{100, 400, 1600};
  std::vector<DynamicsResult> runs;
  for (const double batch : batches) {
    options.batch = static_cast<int>(batch);
    // 40 steps before emergence: noise adds up, its feedback on itself is small.
    runs.push_back(both::simulation(p, start, {0.0, 4.0}, 0.1, options, seeds));
  }
  for (const char* name : {"leakage_key_query", "leakage_cross", "leakage_output_value", "leakage_value_x"}) {
    std::vector<double> leaks, errors;
    for (const DynamicsResult& run : runs) {
      const Band band = seed_band(run, name);
      BOOST_TEST(band.mean.front() < 1e-7);  // a difference of squares at rounding
      leaks.push_back(band.mean.back());
      errors.push_back(band.standard_error.back());
    }
    const PowerLaw law = fit_power_law(batches, leaks, errors);
    BOOST_TEST_CONTEXT(name << ": exponent " << law.exponent << "(" << law.exponent_standard_error << ")") {
      // Errors over 40 seeds: |z| < 4. The same data reject exponents -1/4 and -1.
      BOOST_TEST(std::abs(law.deviation(-0.5)) < 4.0);
      BOOST_TEST(std::abs(law.deviation(-0.25)) > 5.0);
      BOOST_TEST(std::abs(law.deviation(-1.0)) > 5.0);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_leaking_entry_has_zero_mean_over_seeds, *boost::unit_test::label("slow")) {
  const Problem p = small_problem();
  const WeightLayout layout = WeightLayout::of(p);
  const Eigen::VectorXd start = embed(p, rotations(p), aligned_start(p, 0.2, 2.0));
  SimulationOptions options;
  options.evaluation_contexts = 10;
  options.batch = 50;
  options.precision = Precision::single_precision;
  constexpr int seeds = 400;
  std::vector<std::vector<double>> samples(leaking_entries(layout, start).size());
  for (int seed = 1; seed <= seeds; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    const Outcome outcome = descend(*make_descent(p, layout, start, options), 0.1, {0.0, 4.0});
    BOOST_REQUIRE(outcome.status == Status::completed);
    const std::vector<double> entries = leaking_entries(layout, outcome.last.state);
    for (std::size_t k = 0; k < entries.size(); ++k) samples[k].push_back(entries[k]);
  }
  // Seeds are independent and no entry is a function of another one: z-scores of 400 seeds are normal, their squares
  // chi-square, up to correlations that widen it a little. 120 entries: P(|z| > 5) = 7e-5 for any of them.
  double chi_square = 0.0;
  for (const auto& values : samples) {
    const Estimate mean = mean_estimate(values);
    const double z = mean.value / mean.standard_error.value();
    BOOST_TEST(std::abs(z) < 5.0);
    chi_square += z * z;
  }
  const auto entries = static_cast<double>(samples.size());
  const double probability = boost::math::gamma_q(0.5 * entries, 0.5 * chi_square);
  BOOST_TEST_CONTEXT("chi-square " << chi_square << " of " << entries << " entries") {
    BOOST_TEST(probability > 1e-4);
    BOOST_TEST(probability < 1.0 - 1e-4);
  }
  // What is not leakage is seen by the same means: the diagonal of a used block is far from zero.
  std::vector<double> diagonal;
  for (int seed = 1; seed <= 20; ++seed) {
    options.seed = static_cast<std::uint64_t>(seed);
    const Outcome outcome = descend(*make_descent(p, layout, start, options), 0.1, {0.0, 4.0});
    diagonal.push_back(acting(layout, outcome.last.state).output_value[0](0, layout.dimension));
  }
  const Estimate mean = mean_estimate(diagonal);
  BOOST_TEST(mean.value / mean.standard_error.value() > 20.0);
}

BOOST_AUTO_TEST_SUITE_END()
