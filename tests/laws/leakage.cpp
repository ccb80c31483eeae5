// Leakage off the spectral manifold: zero at a decomposable start, and sampling noise, hence batch^-1/2, along a run.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/analysis/power_law.hpp"
#include "support/both.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(leakage)

BOOST_AUTO_TEST_CASE(falls_as_the_inverse_root_of_the_batch) {
  Problem p;
  p.heads = 2;
  p.task_dimensions = {3, 3};
  p.signal_variance = {1.0, 1.0};
  p.context_length = 30;
  p.noise_variance = 0.1;
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

BOOST_AUTO_TEST_SUITE_END()
