#include "iclflow/spectral/finite_dimension.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "iclflow/regression/bounded_flow.hpp"
#include "spectral_cases.hpp"

using Eigen::VectorXd;
using iclflow::Coordinates;
using iclflow::FiniteDimension;

namespace {

iclflow::Problem one_task(int dimension, int length) {
  iclflow::Problem problem;
  problem.task_dimensions = {dimension};
  problem.context_length = length;
  return problem;
}

/// Smallest 2 ell / P of one head over mu and u = omega^2, the local minimum in u, by the closed form in theory/05.
double smallest_loss(int d, double length, double* best_square = nullptr) {
  double before = 1.0;
  for (double u = 1e-4; u < 0.5; u += 1e-4) {
    const double w = std::sqrt(u);
    const double overlap = std::pow(1.0 - 2.0 * u, -0.5 * d);
    const double alpha = overlap * w / ((1.0 - 2.0 * u) * length);
    const double beta = overlap * (1.0 + u / (1.0 - 2.0 * u)) / length;
    const double now = 1.0 - (w - alpha) * (w - alpha) / (u - 2.0 * alpha * w + beta);
    if (now > before) return before;
    before = now;
    if (best_square != nullptr) *best_square = u;
  }
  return before;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(finite_dimension)

// The reference values (Monte Carlo against true attention in brackets: .120 where C1 overshoots, .0315): printed to
// three or four digits.
BOOST_AUTO_TEST_CASE(its_minimum_for_dedicated_weights) {
  struct Row {
    int dimension;
    int length;
    double smallest;
    double digit;
  };
  for (const Row& row : {Row{2, 100, .104, 5e-4}, Row{5, 100, .168, 5e-4}, Row{10, 100, .256, 5e-4},
                         Row{20, 400, .1316, 5e-5}, Row{10, 1000, .0318, 5e-5}}) {
    BOOST_TEST_CONTEXT("d = " << row.dimension << ", L = " << row.length) {
      double u = 0.0;
      const double closed_form = smallest_loss(row.dimension, row.length, &u);
      BOOST_TEST(std::abs(closed_form - row.smallest) < row.digit);
      // The loss itself there, at the closed form's mu; P = 1. The grid of u leaves a second-order error.
      const auto problem = one_task(row.dimension, row.length);
      const FiniteDimension loss(problem, Coordinates::blocks(problem));
      const double w = std::sqrt(u);
      const double overlap = std::pow(1.0 - 2.0 * u, -0.5 * row.dimension);
      const double alpha = overlap * w / ((1.0 - 2.0 * u) * row.length);
      const double beta = overlap * (1.0 + u / (1.0 - 2.0 * u)) / row.length;
      const double mu = (w - alpha) / (u - 2.0 * alpha * w + beta);
      const VectorXd x = (VectorXd(2) << mu, w).finished();
      BOOST_TEST(2.0 * loss.value(x) == closed_form, boost::test_tools::tolerance(1e-12));
      VectorXd gradient;
      loss.gradient(x, gradient);
      BOOST_TEST(std::abs(gradient(0)) < 1e-12);
      BOOST_TEST(std::abs(gradient(1)) < 1e-2);  // u is within 1e-4 of the minimum, the curvature of order 10
    }
  }
}

// Exact through O(1/L): what is left falls as 1/L^2, that of the large-context closure as 1/L. From L = 60 to 240 at
// omega = 0.25, d = 4 the truth by common random numbers has an error far below either.
BOOST_AUTO_TEST_CASE(its_error_falls_as_the_square_of_the_length, *boost::unit_test::label("slow")) {
  const VectorXd x = (VectorXd(4) << 1.5, -0.8, 0.25, -0.2).finished();
  const auto gap = [&](const char* name, int length) {
    auto problem = one_task(4, length);
    problem.heads = 2;
    const auto blocks = Coordinates::blocks(problem);
    const auto closure = iclflow::make_population_loss(name, problem, blocks);
    const iclflow::SampledLoss truth(problem, blocks, {400'000, 1, 1});
    const double error = *truth.standard_error(x);
    BOOST_TEST_MESSAGE(name << " L = " << length << ": " << closure->value(x) - truth.value(x) << " +- " << error);
    return std::pair{closure->value(x) - truth.value(x), error};
  };
  const auto [far, far_error] = gap("finite-dimension", 30);
  const auto [near, near_error] = gap("finite-dimension", 120);
  const double scatter = 4.0 * std::hypot(near_error, far_error / 16.0);
  BOOST_TEST(std::abs(near - far / 16.0) < scatter + 0.25 * std::abs(far) / 16.0);  // next order: 1/L of it
  BOOST_TEST(std::abs(far) / 4.0 > std::abs(near) + scatter);                       // 1/L is excluded
}

// The large-dimension limit at omega = O(d^{-1/2}): what C1 adds to C0 falls as 1/d.
BOOST_AUTO_TEST_CASE(it_becomes_the_large_context_closure_as_d_grows) {
  const auto difference = [](int d) {
    const auto problem = one_task(d, 10 * d);
    const auto blocks = Coordinates::blocks(problem);
    const VectorXd x = (VectorXd(2) << 0.8 * std::sqrt(d), 0.7 / std::sqrt(d)).finished();
    const auto large = iclflow::make_population_loss("large-context", problem, blocks);
    return FiniteDimension(problem, blocks).value(x) - large->value(x);
  };
  const double order = std::log2(difference(1000) / difference(4000)) / 2.0;
  BOOST_TEST(std::abs(order - 1.0) < 0.01);  // next order 1/d = 1e-3 of it
}

BOOST_AUTO_TEST_CASE(outside_its_domain_there_is_an_error_and_never_a_number) {
  const auto problem = one_task(10, 100);
  const FiniteDimension loss(problem, Coordinates::blocks(problem));
  const auto at = [](double omega) { return (VectorXd(2) << 1.0, omega).finished(); };
  // (1 - 2 w^2)^-5 = 20, 40 and beyond
  const double edge = std::sqrt(0.5 * (1.0 - std::pow(20.0, -0.2)));
  BOOST_TEST(std::abs(loss.margin(at(edge))) < 1e-12);
  BOOST_TEST(loss.margin(at(0.99 * edge)) > 0.0);
  BOOST_TEST(loss.margin(at(1.01 * edge)) < 0.0);
  BOOST_TEST(loss.margin(at(0.8)) == -1e6);
  BOOST_TEST(loss.beyond(at(0.8)).find("2 omega^2 = 1.28 of head 0 on task 0") == 0);
  BOOST_TEST(loss.beyond(at(edge)).find("D / L = 0.2 of head 0") == 0);
  BOOST_TEST(loss.beyond(at(edge)).find("\"sampled\"") != std::string::npos);
  const double defined = std::sqrt(0.5 * (1.0 - std::pow(40.0, -0.2)));
  VectorXd gradient;
  loss.gradient(at(0.999 * defined), gradient);
  BOOST_TEST(gradient.allFinite());
  for (const double omega : {1.001 * defined, 0.70, 0.8, 1e200, std::numeric_limits<double>::quiet_NaN()}) {
    BOOST_CHECK_THROW(static_cast<void>(loss.value(at(omega))), std::domain_error);
    BOOST_CHECK_THROW(loss.gradient(at(omega), gradient), std::domain_error);
    BOOST_CHECK_THROW(loss.hessian_vector(at(omega), at(0.1), gradient), std::domain_error);
  }
}

// Inside the domain the loss is unbounded below: a flow that finds the slope ends on the edge, located as an event, the
// same time whatever the stepper's tolerance.
BOOST_AUTO_TEST_CASE(a_flow_ends_on_the_edge) {
  const auto problem = one_task(1, 40);
  const auto start =
      iclflow::balanced_start(problem, iclflow::Matrix::Constant(1, 1, 3.0), iclflow::Matrix::Constant(1, 1, 0.69));
  const iclflow::SpectralFlow flow(problem, start, "finite-dimension");
  const auto run = [&](double tolerance, const std::string& stepper) {
    iclflow::StepperOptions options;
    options.stepper = stepper;
    options.relative_tolerance = tolerance;
    options.step = 0.01;
    return iclflow::integrate_within(flow, "finite-dimension", {0.0, 100.0}, options, {}, {});
  };
  const auto sharp = run(1e-11, "dopri5");
  BOOST_REQUIRE(sharp.status == iclflow::Status::failed);
  BOOST_REQUIRE(sharp.trajectory.events.size() == 1U);
  const auto& event = sharp.trajectory.events.front();
  BOOST_TEST(event.quantity == "closure_margin");
  BOOST_TEST(sharp.message.find("t = ") == 0);
  BOOST_TEST(sharp.message.find("D / L = 0.2 of head 0") != std::string::npos, sharp.message);
  BOOST_TEST(sharp.trajectory.times.back() == event.time);
  // D / L = 0.2 on the edge: 1 - 2 w^2 = 8^-2
  BOOST_TEST(sharp.trajectory["omega"].last()[0] == std::sqrt(0.5 * (1.0 - 1.0 / 64.0)),
             boost::test_tools::tolerance(1e-9));
  const auto rough = run(1e-7, "dopri5");
  BOOST_REQUIRE(rough.trajectory.events.size() == 1U);
  // Some hundred steps, each with a relative error of 1e-7 at most
  BOOST_TEST(rough.trajectory.events.front().time == event.time, boost::test_tools::tolerance(1e-5));
  // A fixed step that would end beyond the edge fails with the closure's own words.
  const auto fixed = run(1e-8, "rk4");
  BOOST_TEST((fixed.status == iclflow::Status::failed));
  BOOST_TEST(fixed.message.find("\"finite-dimension\" ends: ") != std::string::npos, fixed.message);
}

// Random starts inside the domain: every run ends at the final time or on the edge, all numbers finite.
BOOST_AUTO_TEST_CASE(no_run_ends_in_anything_but_the_final_time_or_the_edge) {
  iclflow::Problem problem;
  problem.heads = 2;
  problem.task_dimensions = {1, 3};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 30;
  int ended_early = 0;
  int completed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    for (const auto parametrisation : {iclflow::Parametrisation::merged, iclflow::Parametrisation::split}) {
      problem.parametrisation = parametrisation;
      const auto start = iclflow::random_start(problem, 0.45, seed);
      const iclflow::SpectralFlow flow(problem, start, "finite-dimension");
      if (flow.quantity("closure_margin", flow.initial()) <= 0.0) continue;
      const auto outcome =
          iclflow::integrate_within(flow, "finite-dimension", {0.0, 10.0, 200.0}, iclflow::StepperOptions{}, {}, {});
      for (const double loss : outcome.trajectory["loss"].values) BOOST_TEST(std::isfinite(loss));
      if (outcome.status == iclflow::Status::completed) {
        ++completed;
      } else {
        ++ended_early;
        BOOST_REQUIRE(outcome.trajectory.events.size() == 1U);
        BOOST_TEST(outcome.trajectory.events.front().quantity == "closure_margin", outcome.message);
      }
    }
  }
  BOOST_TEST(completed > 40);
  BOOST_TEST(ended_early >= 5);
}

BOOST_AUTO_TEST_SUITE_END()
