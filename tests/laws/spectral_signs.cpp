#include <Eigen/Eigenvalues>
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/reduction/projection.hpp"
#include "iclflow/spectral/spectral_flow.hpp"
#include "spectral_cases.hpp"

using Eigen::VectorXd;
using iclflow::SpectralFlow;

namespace {

/// Largest step of classical Runge-Kutta that is stable everywhere on a trajectory: 2.785 / |fastest rate|.
double stable_step(const SpectralFlow& flow, double time) {
  Eigen::MatrixXd jacobian;
  double fastest = 0.0;
  VectorXd y = flow.initial();
  const auto velocity = [&](const VectorXd& state, VectorXd& rate) { flow.velocity(state, rate); };
  for (int n = 0; n < 400; ++n) {
    flow.jacobian(y, jacobian);
    fastest = std::max(fastest, jacobian.eigenvalues().cwiseAbs().maxCoeff());
    y = spectral_cases::runge_kutta(velocity, y, time / 400, 10);
  }
  return 2.785 / fastest;
}

iclflow::Outcome run(const SpectralFlow& flow, const std::vector<double>& times, const std::string& stepper,
                     double step) {
  iclflow::StepperOptions options;
  options.stepper = stepper;
  options.step = step;
  return iclflow::integrate(flow, times, options);
}

bool keeps_signs(const iclflow::Trajectory& trajectory, const char* name) {
  const auto first = trajectory[name].at(0);
  for (std::size_t n = 0; n < trajectory.samples(); ++n) {
    const auto row = trajectory[name].at(n);
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (!(row[j] * first[j] >= 0.0)) return false;  // >= : a magnitude may underflow to zero
    }
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spectral_signs)

// A law of the charts, whatever the closure.
BOOST_AUTO_TEST_CASE(balanced_products_keep_their_sign_at_ten_times_the_stable_step) {
  for (const auto& c : spectral_cases::of_large_context()) {
    if (c.problem.parametrisation == iclflow::Parametrisation::merged || !c.start.imbalance_mu.isZero(0.0)) continue;
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow flow = c.flow();
      const double step = 10.0 * stable_step(flow, 60.0);
      std::vector<double> times;
      for (int n = 0; n <= 40; ++n) times.push_back(n * step);
      // Far beyond stability the values are wrong and may overflow; what was reached until then must obey the law.
      const auto outcome = run(flow, times, "rk4", step);
      BOOST_TEST(outcome.trajectory.samples() > 1);
      BOOST_TEST(keeps_signs(outcome.trajectory, "mu"));
      BOOST_TEST(keeps_signs(outcome.trajectory, "omega"));

      // Steps up to this size in the products themselves break it: the step is large enough to mean something.
      const auto loss = c.loss(flow.coordinates());
      const VectorXd start = flow.products(flow.initial());
      const auto raw = [&](const VectorXd& x, VectorXd& rate) {
        loss->gradient(x, rate);
        for (Eigen::Index j = 0; j < x.size(); ++j) {
          const bool is_mu = j < c.start.mu.size();
          rate(j) *= -2.0 * (is_mu ? 1.0 : c.problem.score_factor()) * std::abs(x(j));
        }
      };
      bool crossed = false;
      for (const double fraction : {0.2, 0.3, 0.5, 1.0}) {
        VectorXd x = start;
        for (int n = 0; n < 40 && x.allFinite(); ++n) {
          spectral_cases::runge_kutta_step(raw, fraction * step, x);
          crossed = crossed || (x.array() * start.array() < 0.0).any();
        }
      }
      BOOST_TEST(crossed);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_imbalanced_product_may_cross) {
  auto c = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.5);
  c.problem.heads = 1;
  for (iclflow::Matrix* part : {&c.start.mu, &c.start.omega, &c.start.imbalance_mu, &c.start.imbalance_omega}) {
    *part = iclflow::Matrix(part->topRows(1));
  }
  c.start.mu.setConstant(-0.3);
  c.start.omega.setConstant(0.4);
  const SpectralFlow flow = c.flow();
  const auto crossing = run(flow, {0.0, 200.0}, "dopri5", 0.0);
  BOOST_TEST(crossing.trajectory["mu"].last()[0] > 0.1);

  c.start.imbalance_mu.setZero();
  c.start.imbalance_omega.setZero();
  const SpectralFlow balanced = c.flow();
  const auto staying = run(balanced, {0.0, 200.0}, "dopri5", 0.0);
  BOOST_TEST(staying.trajectory["mu"].last()[0] < 0.0);
}

// Weights of a balanced start in a random basis, read back: rounding must not pass for an imbalance, with which unused
// products would cross zero and leave the dedicated limit after a time of order log(1/rounding).
BOOST_AUTO_TEST_CASE(a_start_read_from_balanced_weights_is_balanced) {
  auto problem = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.0).problem;
  problem.rotation = iclflow::Rotation::random;
  problem.rotation_seed = 3;
  const auto start = iclflow::aligned_start(problem, 0.1, 3.0);
  const auto layout = iclflow::WeightLayout::of(problem);
  const auto basis = iclflow::rotations(problem);
  const auto back = iclflow::project_start(problem, layout, basis, iclflow::embed(problem, basis, start));
  BOOST_TEST(back.imbalance_mu.isZero(0.0));
  BOOST_TEST(back.imbalance_omega.isZero(0.0));
  const auto end = run(SpectralFlow(problem, back, "large-context"), {0.0, 3000.0}, "dopri5", 0.0);
  const auto expected = run(SpectralFlow(problem, start, "large-context"), {0.0, 3000.0}, "dopri5", 0.0);
  // The starts differ by rounding only; the limit is stable on the balanced manifold: two integrations at 1e-8.
  BOOST_TEST(end.trajectory["loss"].last()[0] == expected.trajectory["loss"].last()[0],
             boost::test_tools::tolerance(1e-6));
  auto seeded = start;
  seeded.imbalance_mu.setConstant(1e-16);
  const auto escaped = run(SpectralFlow(problem, seeded, "large-context"), {0.0, 3000.0}, "dopri5", 0.0);
  BOOST_TEST(escaped.trajectory["loss"].last()[0] < 0.99 * expected.trajectory["loss"].last()[0]);
}

BOOST_AUTO_TEST_CASE(blocks_and_all_coordinates_agree_to_tolerance_with_every_stepper) {
  const auto c = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.3);
  const SpectralFlow blocks = c.flow();
  const SpectralFlow full = c.flow(true);
  for (const auto& stepper : iclflow::steppers()) {
    if (!stepper.adaptive) continue;
    BOOST_TEST_CONTEXT(stepper.name) {
      const auto a = run(blocks, {0.0, 5.0, 30.0}, std::string(stepper.name), 0.0);
      const auto b = run(full, {0.0, 5.0, 30.0}, std::string(stepper.name), 0.0);
      BOOST_REQUIRE(a.status == iclflow::Status::completed);
      BOOST_REQUIRE(b.status == iclflow::Status::completed);
      for (const char* name : {"mu", "omega"}) {
        const auto x = a.trajectory[name].last();
        const auto y = b.trajectory[name].last();
        // Steps may differ; each leaves at most the relative tolerance 1e-8, some hundreds add up at worst.
        for (std::size_t j = 0; j < x.size(); ++j) BOOST_TEST(std::abs(x[j] - y[j]) < 1e-6);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
