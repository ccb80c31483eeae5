#include "iclflow/spectral/closed_forms.hpp"

#include <Eigen/Cholesky>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/random/stream.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

using iclflow::Matrix;
using iclflow::Problem;

namespace {

Problem equal_tasks(int heads, int tasks, int dimension, int context_length, double noise_variance = 0.0) {
  Problem p;
  p.heads = heads;
  p.task_dimensions.assign(static_cast<std::size_t>(tasks), dimension);
  p.signal_variance.assign(static_cast<std::size_t>(tasks), 1.0);
  p.context_length = context_length;
  p.noise_variance = noise_variance;
  return p;
}

Problem unequal_tasks(int heads) {
  Problem p = equal_tasks(heads, 2, 10, 400, 0.2);
  p.task_dimensions = {6, 12};
  p.signal_variance = {1.0, 1.5};
  return p;
}

iclflow::Trajectory evolve(const Problem& problem, const iclflow::InitialState& start,
                           const std::vector<double>& times) {
  iclflow::StepperOptions options;
  options.stepper = "rosenbrock4";  // late times are stiff
  options.relative_tolerance = 1e-9;
  options.absolute_tolerance = 1e-14;
  const iclflow::SpectralFlow flow(problem, start, "large-context");
  auto outcome = iclflow::integrate(flow, times, options);
  BOOST_REQUIRE_MESSAGE(outcome.status == iclflow::Status::completed, outcome.message);
  return std::move(outcome.trajectory);
}

/// C0 and its gradient at block values mu, omega (H x I).
struct LossAt {
  double value;
  Eigen::VectorXd gradient;
  LossAt(const Problem& problem, const Matrix& mu, const Matrix& omega) {
    const auto loss = iclflow::make_population_loss("large-context", problem, iclflow::Coordinates::blocks(problem));
    const Eigen::VectorXd state = iclflow::SpectralState{mu, omega}.flat();
    value = loss->value(state);
    loss->gradient(state, gradient);
  }
};

void check_relative(double result, double expected, double tolerance) {
  BOOST_TEST(std::abs(result - expected) <= tolerance * std::abs(expected),
             result << " against " << expected << ", relative " << result / expected - 1.0);
}

/// ell = (P/2) x/(1+x), solved for x.
double x_of_loss(const Problem& problem, double loss) { return loss / (0.5 * problem.signal_power(0) - loss); }

Matrix row(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::RowVectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(closed_forms)

BOOST_AUTO_TEST_CASE(dedicated_limit_is_where_the_balanced_flow_ends) {
  for (const Problem& problem : {equal_tasks(1, 1, 5, 200), equal_tasks(2, 2, 10, 300), unequal_tasks(3)}) {
    const auto limit = iclflow::dedicated_limit(problem).value();
    const auto run = evolve(problem, iclflow::aligned_start(problem, 0.05, 4.0), {0.0, 1e5, 1e6});
    const auto tasks = static_cast<std::size_t>(problem.tasks());
    for (const std::size_t sample : {1U, 2U}) {
      // What is left at t falls as 1/t^2 (next case): below 1e-6 from 1e5 on for these powers and lengths.
      check_relative(run["loss"].at(sample)[0], limit.loss, 1e-6);
      for (std::size_t i = 0; i < tasks; ++i) {
        check_relative(run["mu"].at(sample)[i * tasks + i], limit.mu[i], 1e-6);
        check_relative(run["omega_block"].at(sample)[i * tasks + i], limit.omega[i], 1e-6);
      }
    }
  }
  BOOST_TEST(!iclflow::dedicated_limit(equal_tasks(1, 2, 5, 100)).has_value());
}

// The omega that a dedicated head does not use has w' = -2 s c w^2 with c = P phi mu^2 e / L (E_hh is even in it), so
// 1/w gains 2 s c per unit time, and the loss above its limit is sum (c/2) d w^2 = sum d/(8 s^2 c) / t^2.
BOOST_AUTO_TEST_CASE(unused_omega_decays_as_one_over_time_and_the_loss_as_its_square) {
  const Problem problem = equal_tasks(2, 2, 10, 300);
  const auto limit = iclflow::dedicated_limit(problem).value();
  const auto run = evolve(problem, iclflow::aligned_start(problem, 0.05, 4.0), {0.0, 1e5, 2e5});
  const double c = problem.signal_power(0) * limit.mu[0] * limit.mu[0] * std::numbers::e / problem.context_length;
  const double first = run["omega_block"].at(1)[1];
  const double second = run["omega_block"].at(2)[1];
  // Next order: E_hh grows by d w^2 = 2e-7 here, and so does c; the integrator adds some 1e-8.
  check_relative((1.0 / second - 1.0 / first) / 1e5, 2.0 * c, 2e-6);
  const double gap_first = run["loss"].at(1)[0] - limit.loss;
  const double gap_second = run["loss"].at(2)[0] - limit.loss;
  const double constant = 2.0 * 10.0 / (8.0 * c);
  // The gap is 1e-7 of the loss, known to 1e-15: 1e-8 relative, through the difference of two roots 1e-7.
  check_relative((1.0 / std::sqrt(gap_second) - 1.0 / std::sqrt(gap_first)) / 1e5, 1.0 / std::sqrt(constant), 1e-5);
  // Doubling the time divides the gap by 4 (1/t would divide it by 2); the time origin of the tail, some 1e2 to 1e3,
  // shifts this by 2 * 1e3 / 1e5 at most.
  check_relative(gap_first / gap_second, 4.0, 0.02);
}

BOOST_AUTO_TEST_CASE(x_has_slope_one_in_the_inverse_context_length) {
  for (const int length : {100, 200, 500, 1000, 2000}) {
    const Problem problem = equal_tasks(1, 1, 10, length);
    const auto run = evolve(problem, iclflow::aligned_start(problem, 0.05, 1.0), {0.0, 1e5});
    // x = e d/L exactly: its slope in d/L is 1 on log axes. One task, no unused omega: only the integrator's error.
    check_relative(x_of_loss(problem, run["loss"].last()[0]), std::numbers::e * 10.0 / length, 1e-8);
  }
}

BOOST_AUTO_TEST_CASE(a_single_head_pays_the_number_of_tasks) {
  for (const int tasks : {1, 2, 5}) {
    const Problem problem = equal_tasks(tasks, tasks, 7, 300, 0.4);
    const auto single = iclflow::best_single_head(problem);
    BOOST_TEST(single.coefficient == std::numbers::e * tasks, boost::test_tools::tolerance(1e-15));
    const double dedicated = x_of_loss(problem, iclflow::dedicated_limit(problem)->loss / tasks);
    check_relative(x_of_loss(problem, single.loss / tasks) / dedicated, tasks, 1e-12);  // rounding through 1/(P/2-ell)
  }
}

BOOST_AUTO_TEST_CASE(best_single_head_is_the_minimum) {
  std::vector<Problem> problems{equal_tasks(1, 3, 4, 150), unequal_tasks(1)};
  problems.push_back(unequal_tasks(1));  // a third task too weak to be worth serving
  problems.back().task_dimensions = {6, 12, 30};
  problems.back().signal_variance = {1.0, 1.5, 0.001};
  for (const Problem& problem : problems) {
    const auto best = iclflow::best_single_head(problem);
    const LossAt at(problem, row(best.mu), row(best.omega));
    check_relative(at.value, best.loss, 1e-13);
    BOOST_TEST(at.gradient.cwiseAbs().maxCoeff() < 1e-13);  // rounding of terms of order one
    // No start of the merged flow, which is free to change signs, ends lower; some end there.
    double lowest = std::numeric_limits<double>::infinity();
    Problem merged = problem;
    merged.parametrisation = iclflow::Parametrisation::merged;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const auto run = evolve(merged, iclflow::random_start(merged, 0.5, seed), {0.0, 1e7});
      lowest = std::min(lowest, run["loss"].last()[0]);
    }
    BOOST_TEST(lowest >= best.loss * (1.0 - 1e-12));
    check_relative(lowest, best.loss, 1e-6);
    // The coefficient reproduces the loss.
    double loss = 0.0;
    for (int i = 0; i < problem.tasks(); ++i) {
      const double x = best.coefficient * problem.noise_factor(i) *
                       problem.task_dimensions[static_cast<std::size_t>(i)] / problem.context_length;
      loss += 0.5 * problem.signal_power(i) * x / (1.0 + x);
    }
    check_relative(loss, best.loss, 1e-12);
  }
  BOOST_TEST(iclflow::best_single_head(problems.back()).mu[2] == 0.0);
}

// Zero-sum heads: with B (I x (H-1)) of orthonormal columns with equal row norms and C (H x (H-1)) of orthonormal
// columns that sum to zero, mu = (a/w) C B^T and omega = w C B^T act as the linear map a B B^T without e^Gram's price.
BOOST_AUTO_TEST_CASE(best_coefficient_is_reached_by_zero_sum_heads) {
  Matrix hadamard(4, 4);
  hadamard << 1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1;
  for (const int heads : {2, 3, 5}) {
    const Problem problem = equal_tasks(heads, 4, 6, 200, 0.1);
    const double kappa = iclflow::best_coefficient(problem).value();
    BOOST_TEST(kappa == (heads == 5 ? 1.0 : 4.0 / (heads - 1)));
    const Matrix b = hadamard.leftCols(heads - 1) / 2.0;
    Matrix c = Matrix::Zero(heads, heads - 1);
    for (int k = 1; k < heads; ++k) {  // Helmert's contrasts
      c.col(k - 1).head(k).setConstant(1.0 / std::sqrt(k * (k + 1.0)));
      c(k, k - 1) = -k / std::sqrt(k * (k + 1.0));
    }
    const double x = kappa * problem.noise_factor(0) * 6.0 / problem.context_length;
    const double a = kappa / (1.0 + x);
    const double w = 1e-3;
    const double loss = LossAt(problem, a / w * c * b.transpose(), w * c * b.transpose()).value;
    // e^Gram beyond its linear part is of relative order d w^2; mu^2 = 1e6 amplifies rounding to 1e-10.
    check_relative(loss, 4 * 0.5 * problem.signal_power(0) * x / (1.0 + x), 6.0 * w * w);
  }
  BOOST_TEST(iclflow::best_coefficient(equal_tasks(1, 4, 6, 200)).value() == 4 * std::numbers::e);
  BOOST_TEST(!iclflow::best_coefficient(unequal_tasks(2)).has_value());
}

BOOST_AUTO_TEST_CASE(opposite_pair_is_the_best_of_its_kind) {
  const Problem problem = equal_tasks(2, 1, 8, 120, 0.3);
  const double phi = problem.noise_factor(0);
  for (const double w : {0.01, 0.2, 0.5}) {
    const double mu = w / (2.0 * (w * w + phi * std::sinh(8 * w * w) / 120.0));
    Matrix column(2, 1);
    column << 1.0, -1.0;
    const LossAt at(problem, mu * column, w * column);
    check_relative(at.value, iclflow::opposite_pair_loss(problem, w), 1e-10);  // mu^2 up to 1e3 amplifies rounding
    BOOST_TEST(std::abs(at.gradient(0)) < 1e-12);
    BOOST_TEST(at.value > iclflow::opposite_pair(problem)->loss);
  }
  BOOST_TEST(iclflow::opposite_pair_loss(problem, 0.0) == iclflow::opposite_pair(problem)->loss);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::opposite_pair_loss(equal_tasks(2, 2, 8, 120), 0.1)),
                    std::invalid_argument);
}

// Given the contexts, Bayes' error of one task in units of P is the mean posterior variance
// (1/d) tr (I + (P/(d sigma^2)) X X^T)^{-1}; its large-d form errs by O(1/d), measured 0.1/d to 0.44/d.
BOOST_AUTO_TEST_CASE(ridge_agrees_with_sampled_posteriors) {
  for (const int length : {40, 160}) {
    Problem problem = equal_tasks(1, 1, 80, length, 0.5);
    problem.signal_variance = {2.0};
    const double power = problem.signal_power(0);
    iclflow::NormalStream normal({11, iclflow::Stream::evaluation, 0, 0});
    double sum = 0.0;
    double squares = 0.0;
    const int draws = 40;
    for (int n = 0; n < draws; ++n) {
      Eigen::MatrixXd x(80, length);
      for (double& entry : x.reshaped()) entry = normal();
      const Eigen::MatrixXd precision =
          Eigen::MatrixXd::Identity(80, 80) + power / (80 * problem.noise_variance) * x * x.transpose();
      const double error = 0.5 * power * precision.llt().solve(Eigen::MatrixXd::Identity(80, 80)).trace() / 80;
      sum += error;
      squares += error * error;
    }
    const double mean = sum / draws;
    const double standard_error = std::sqrt((squares / draws - mean * mean) / (draws - 1));
    BOOST_TEST(std::abs(iclflow::ridge_loss(problem) - mean) < 4 * standard_error + 0.5 * mean / 80.0);
    BOOST_TEST(standard_error < 0.01 * mean);
  }
  // Without noise d observations solve the task; fewer leave 1 - L/d.
  BOOST_TEST(iclflow::ridge_loss(equal_tasks(1, 1, 10, 10)) == 0.0);
  BOOST_TEST(iclflow::ridge_loss(equal_tasks(1, 1, 10, 4)) == 0.5 * 0.6, boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_CASE(gradient_step_agrees_with_sampled_steps) {
  const Problem problem = equal_tasks(1, 1, 3, 8, 0.6);
  const double eta = 1.0 / (1.0 + (3 * problem.noise_factor(0) + 1.0) / 8.0);
  iclflow::NormalStream normal({12, iclflow::Stream::evaluation, 0, 0});
  double sum = 0.0;
  double squares = 0.0;
  const int draws = 40000;
  for (int n = 0; n < draws; ++n) {
    Eigen::VectorXd g(3);
    for (double& entry : g) entry = problem.response_factor() * normal();
    Eigen::VectorXd step = Eigen::VectorXd::Zero(3);
    for (int l = 0; l < 8; ++l) {
      Eigen::VectorXd x(3);
      for (double& entry : x) entry = normal();
      step += (g.dot(x) + std::sqrt(problem.noise_variance) * normal()) * x / 8.0;
    }
    const double error = 0.5 * (g - eta * step).squaredNorm();  // averaged over the query
    sum += error;
    squares += error * error;
  }
  const double mean = sum / draws;
  const double standard_error = std::sqrt((squares / draws - mean * mean) / (draws - 1));
  BOOST_TEST(std::abs(iclflow::gradient_step_loss(problem) - mean) < 4 * standard_error);
  BOOST_TEST(standard_error < 0.01 * mean);
}

BOOST_AUTO_TEST_SUITE_END()
