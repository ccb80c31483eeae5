// Full-parameter linear attention against its reductions, on one clock, within the seeds' standard errors.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/integrate/descent.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/mesa/complex_attention.hpp"
#include "iclflow/regression/linear_simulation.hpp"

using namespace iclflow;

namespace {

constexpr std::size_t seeds = 4;

std::vector<double> times(double last, int samples) {
  std::vector<double> all;
  for (int k = 0; k <= samples; ++k) all.push_back(last * k / samples);
  return all;
}

DynamicsResult theory(const OdeSystem& system, const std::vector<double>& at) {
  StepperOptions options;
  options.absolute_tolerance = 1e-15;
  Outcome outcome = integrate(system, at, options);
  BOOST_REQUIRE(outcome.status == Status::completed);
  DynamicsResult result;
  result.members.push_back(std::move(outcome.trajectory));
  return result;
}

template <typename Make>
DynamicsResult simulation(const Make& make, double learning_rate, const std::vector<double>& at) {
  DynamicsResult result;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Outcome outcome = descend(*make(seed), learning_rate, at);
    BOOST_REQUIRE(outcome.status == Status::completed);
    result.seeds.push_back(seed);
    result.members.push_back(std::move(outcome.trajectory));
  }
  return result;
}

DynamicsResult complex_attention(const UnitarySequences& sequences, bool active, int batch, int evaluation,
                                 double learning_rate, const std::vector<double>& at) {
  const auto make = [&](std::uint64_t seed) {
    ComplexAttentionOptions options;
    options.sequences = sequences;
    options.a = 0.05;
    options.b = 0.1;
    options.active_blocks = active;
    options.seed = seed;
    options.batch = batch;
    options.evaluation_contexts = evaluation;
    options.threads = 1;
    return make_complex_attention(options);
  };
  return simulation(make, learning_rate, at);
}

/// Largest |mean over seeds - theory| / (standard error + systematic) over samples.
double worst(const DynamicsResult& theory, const DynamicsResult& simulation, std::string_view observable,
             double systematic) {
  const Band band = seed_band(simulation, observable);
  const Observable& expected = theory.members.front()[observable];
  double largest = 0.0;
  for (std::size_t k = 0; k < band.mean.size(); ++k) {
    const double off = std::abs(band.mean[k] - expected.values.at(k));
    largest = std::max(largest, off / (band.standard_error[k] + systematic));
  }
  return largest;
}

UnitarySequences sequences(TransitionKind kind, FirstState law) {
  UnitarySequences s;
  s.kind = kind;
  s.dimension = 4;
  s.length = 20;
  s.initial = law;
  return s;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_reductions, *boost::unit_test::label("slow"))

// Standard errors of four seeds are themselves uncertain (Student's t with three degrees of freedom; 20 correlated
// samples): 12 of them have a false alarm of 1e-3 a sample at most. Systematic: one step of descent, rate A lr of the
// limit.
BOOST_AUTO_TEST_CASE(complex_attention_follows_two_parameters) {
  for (const FirstState law : {FirstState::normal, FirstState::sparse}) {
    const UnitarySequences s = sequences(TransitionKind::unitary, law);
    const ProductLoss loss = product_loss(s);
    const double last = 6.0 / loss.linear;
    const double learning_rate = last / 600.0;
    const std::vector<double> at = times(last, 20);
    const DynamicsResult flow = theory(ProductFlow(loss, 0.05, 0.1), at);
    const DynamicsResult full = complex_attention(s, false, 64, 256, learning_rate, at);
    const double step = loss.linear * learning_rate;
    BOOST_TEST(worst(flow, full, "product", step * loss.limit()) < 12.0);
    const ObservableGap gap = observable_gap(flow, full, "product", largest_final(flow, "product"));
    const ObservableGap loss_gap = observable_gap(flow, full, "loss", loss.value(0.0));
    BOOST_TEST_MESSAGE("product gap " << gap.mean.value << ", loss gap " << loss_gap.mean.value);
    BOOST_TEST(gap.mean.value < 0.03);
    BOOST_TEST(loss_gap.mean.value < 0.02);
    // the course really ends at its limit
    BOOST_TEST(flow.members[0]["product"].last()[0] > 0.95 * loss.limit());
  }
}

// Rotations: two blocks alone do, all blocks do not.
BOOST_AUTO_TEST_CASE(rotations_do_only_with_two_blocks) {
  const UnitarySequences s = sequences(TransitionKind::rotation, FirstState::normal);
  const ProductLoss loss = product_loss(s);
  const double last = 8.0 / loss.linear;
  const std::vector<double> at = times(last, 20);
  const DynamicsResult flow = theory(ProductFlow(loss, 0.05, 0.1), at);
  const DynamicsResult two = complex_attention(s, true, 256, 256, last / 600.0, at);
  const DynamicsResult all = complex_attention(s, false, 256, 10000, last / 600.0, at);
  const auto final_mean = [](const DynamicsResult& result, std::string_view observable) {
    return seed_band(result, observable).mean.back();
  };
  BOOST_TEST(observable_gap(flow, two, "product", loss.limit()).mean.value < 0.03);
  // noise alone makes the two blocks' leakage; what all blocks learn is several times that, and lowers the loss
  BOOST_TEST(final_mean(all, "leakage") > 2.5 * final_mean(two, "leakage"));
  BOOST_TEST(final_mean(all, "loss") + 2.0 * final_mean(all, "loss_standard_error") < loss.value(loss.limit()));
}

BOOST_AUTO_TEST_CASE(linear_attention_follows_its_population_flow) {
  LinearContexts contexts;
  contexts.length = 31;
  for (const bool split : {false, true}) {
    contexts.covariance = split ? Eigen::VectorXd{{1.6, 0.8}} : Eigen::VectorXd{{1.0, 1.0}};
    const FullLinearLayout layout{split, 2, 2};
    const Eigen::VectorXd start = aligned_linear_start(contexts, layout.reduced(), split ? 0.08 : 1e-3);
    const std::vector<double> at = times(split ? 30.0 : 8.0, 40);
    const DynamicsResult flow = theory(LinearAttentionFlow(contexts, layout.reduced(), start), at);
    const auto make = [&](std::uint64_t seed) {
      LinearSimulationOptions options;
      options.seed = seed;
      options.batch = 200;
      options.evaluation_contexts = 500;
      options.threads = 1;
      return make_linear_descent(contexts, layout, embed_linear(layout, start), options);
    };
    const DynamicsResult full = simulation(make, split ? 0.01 : 0.004, at);
    const double initial = flow.members[0]["loss"].at(0)[0];
    const ObservableGap gap = observable_gap(flow, full, "loss", initial);
    BOOST_TEST_MESSAGE((split ? "split " : "merged ") << gap.mean.value << ", largest " << gap.maximum.value);
    // systematic: steps of descent, and the excess of noisy steps, half a per cent of the loss
    BOOST_TEST(worst(flow, full, "loss", 0.005 * initial) < 12.0);
    BOOST_TEST(gap.mean.value < 0.02);
    BOOST_TEST(flow.members[0]["loss"].last()[0] < 0.3 * initial);
  }
}

BOOST_AUTO_TEST_SUITE_END()
