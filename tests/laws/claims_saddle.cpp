// Claim (k): the dedicated limit is a saddle of the full dynamics, although it attracts the balanced reduced flow.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/regression/saddle.hpp"
#include "iclflow/regression/simulation.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/spectral_flow.hpp"
#include "iclflow/spectral/stability.hpp"

using namespace iclflow;

namespace {

Problem two_by_two() {
  Problem problem;
  problem.heads = 2;
  problem.task_dimensions = {2, 2};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 20;
  problem.response_scale = ResponseScale::unit;
  return problem;
}

/// mu gradient of every entry on exactly the contexts that the linearisation uses.
Matrix sampled_growth(const Problem& problem, const SaddleOptions& options, ThreadTeam& team) {
  const WeightLayout layout = WeightLayout::of(problem);
  const Rotations basis = rotations(problem);
  SymmetrisedGradient gradient(problem, layout, basis, options.seed, static_cast<std::size_t>(options.contexts), team);
  const auto at = gradient(acting(layout, embed(problem, basis, dedicated_start(problem))));
  Matrix g(problem.heads, problem.tasks());
  for (int h = 0; h < problem.heads; ++h) {
    g.row(h) = at.gradient.output_value[static_cast<std::size_t>(h)].rightCols(problem.tasks()).diagonal();
  }
  return g;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_saddle)

// Eigenvalues against the derivative they are predicted to be, on the same contexts: no sampling error is left, only
// that of central differences (about 1e-10 of the gradient's scale over eigenvalues of order 0.1) and of Lanczos
// (1e-8). The contexts' own minimum is not exactly here, so that entries in use have a small slope, too: where it is
// negative the balanced direction grows instead.
BOOST_AUTO_TEST_CASE(output_value_modes_grow_at_the_slope_of_the_loss) {
  const Problem problem = two_by_two();
  ThreadTeam team(1);
  SaddleOptions options;
  options.contexts = 150;
  options.modes = 24;
  const Matrix g = sampled_growth(problem, options, team);
  BOOST_REQUIRE(g(0, 1) > 0.0);
  BOOST_REQUIRE(g(1, 0) > 0.0);
  const auto modes = unstable_modes(problem, dedicated_start(problem), options, team);
  Eigen::MatrixXi copies = Eigen::MatrixXi::Zero(2, 2);
  for (const UnstableMode& mode : modes) {
    if (mode.share < 0.5) continue;  // key-query modes: zero for the population, sampling noise here
    const double slope = g(mode.head, mode.task);
    BOOST_TEST(std::abs(mode.growth_rate - std::abs(slope)) < 1e-6);
    BOOST_TEST(std::abs(mode.antisymmetry - std::copysign(1.0, slope)) < 1e-6);
    BOOST_TEST(std::abs(mode.share - 1.0) < 1e-6);
    ++copies(mode.head, mode.task);
  }
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 2; ++i) {
      // e - 1: one direction of the head's embedding space is taken by the task it serves. Those below the smallest
      // mode that was asked for are not seen.
      if (std::abs(g(h, i)) > modes.back().growth_rate + 1e-6) BOOST_TEST(copies(h, i) == problem.embedding() - 1);
    }
  }
  BOOST_TEST(copies(0, 1) + copies(1, 0) >= problem.embedding() - 1);
}

BOOST_AUTO_TEST_CASE(growth_of_the_large_context_closure_is_the_closed_form) {
  Problem problem = two_by_two();
  problem.noise_variance = 0.5;
  const Coordinates blocks = Coordinates::blocks(problem);
  const auto loss = make_population_loss("large-context", problem, blocks);
  const auto limit = dedicated_limit(problem);
  for (const double y : {0.0, 0.3, 1.0, 1.7}) {
    Matrix mu = Matrix::Zero(2, 2);
    Matrix omega = Matrix::Constant(2, 2, y / std::sqrt(2.0));
    for (int i = 0; i < 2; ++i) {
      mu(i, i) = limit->mu[0];
      omega(i, i) = limit->omega[0];
    }
    // Only head 0 is looked at; head 1 keeps no spare omega, so that it is the dedicated head of task 1.
    omega(1, 0) = 0.0;
    const auto growth = predicted_growth(*loss, problem, blocks, {mu, omega});
    const auto entry = std::find_if(growth.begin(), growth.end(), [](const auto& p) { return p.head == 0; });
    BOOST_REQUIRE(entry != growth.end());
    // g = P phi sqrt(d_i) (e^y - e y) / (L (1 + x)): rounding only
    const double x = std::exp(1.0) * problem.noise_factor(1) * 2.0 / 20.0;
    const double g = problem.signal_power(1) * problem.noise_factor(1) * std::sqrt(2.0) *
                     (std::exp(y) - std::exp(1.0) * y) / (20.0 * (1.0 + x));
    BOOST_TEST(std::abs(entry->growth_rate - g) < 1e-12);
    BOOST_TEST(entry->multiplicity == problem.embedding() - 1);
  }
}

// An imbalance C of an unused entry lets its product cross zero: t(theta) = (1/2g) [asinh(2 mu_0/|C|) +
// asinh(2 theta/|C|)] from mu_0 at rate g. Slope of the time against log(1/C): 1/g; a slope of 1/(2g) is rejected.
BOOST_AUTO_TEST_CASE(escape_time_is_logarithmic_in_the_imbalance) {
  const Problem problem = two_by_two();
  const double theta = 1e-3;  // small against mu: the loss is not bent yet, g moves by O(theta / mu)
  std::vector<double> times;
  const std::vector<double> imbalances{1e-6, 1e-8, 1e-10};
  for (const double c : imbalances) {
    InitialState start = dedicated_start(problem);
    start.imbalance_mu(0, 1) = c;
    const SpectralFlow flow(problem, start, "large-context");
    StepperOptions options;
    options.relative_tolerance = 1e-10;
    options.absolute_tolerance = 1e-18;
    const Outcome run = integrate(flow, {0.0, 1000.0}, options, {{"mu[0][1]", -theta, Direction::falling, true}});
    BOOST_REQUIRE(run.trajectory.events.size() == 1U);
    times.push_back(run.trajectory.events.front().time);
  }
  const Coordinates blocks = Coordinates::blocks(problem);
  const auto loss = make_population_loss("large-context", problem, blocks);
  const InitialState limit = dedicated_start(problem);
  const double g =
      predicted_growth(*loss, problem, blocks, {limit.mu, block_means(problem, limit.omega)}).front().growth_rate;
  for (std::size_t k = 0; k < times.size(); ++k) {
    // From mu_0 = 0. Relative error O(theta / mu*) of g over the last e-folds: theta / (2 g mu*) in time.
    const double predicted = escape_time(g, imbalances[k], 0.0, theta);
    BOOST_TEST(std::abs(times[k] - predicted) < 4.0 * theta / (2.0 * g));
  }
  const double slope = (times[2] - times[0]) / std::log(imbalances[0] / imbalances[2]);
  BOOST_TEST(std::abs(slope * 2.0 * g - 1.0) < 1e-4);
  BOOST_TEST(std::abs(slope * g - 1.0) > 0.4);
}

BOOST_AUTO_TEST_SUITE_END()
