#include "iclflow/spectral/spectral_flow.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "spectral_cases.hpp"

using Eigen::VectorXd;
using iclflow::Matrix;
using iclflow::SpectralFlow;
using iclflow::SpectralState;
using iclflow::Trajectory;

namespace {

// Products computed along two routes that are equal in exact arithmetic, hundreds of steps of tens of operations each,
// each rounded relative to values of order one: 1e5 roundings at most, random in sign.
const double rounding = std::sqrt(1e5) * std::numeric_limits<double>::epsilon();

Trajectory sampled(const SpectralFlow& flow, const VectorXd& y) {
  Trajectory trajectory;
  flow.declare(trajectory);
  flow.observe(y, trajectory);
  return trajectory;
}

Matrix matrix(const Trajectory& trajectory, const char* name) {
  const auto& observable = trajectory[name];
  return Eigen::Map<const Matrix>(observable.values.data(), static_cast<Eigen::Index>(observable.shape[0]),
                                  static_cast<Eigen::Index>(observable.shape[1]));
}

void check_equal(const Matrix& a, const Matrix& b, double tolerance) {
  BOOST_REQUIRE(a.rows() == b.rows() && a.cols() == b.cols());
  BOOST_TEST((a - b).cwiseAbs().maxCoeff() <= tolerance * (1.0 + b.cwiseAbs().maxCoeff()));
}

/// The factors of x = s a b with a^2 - b^2 = C, the sign of x in b.
struct Factors {
  VectorXd a, b;
  Factors(const VectorXd& x, const VectorXd& imbalance, const VectorXd& s) {
    const VectorXd product = x.cwiseQuotient(s);
    const VectorXd sum = (imbalance.array().square() + 4 * product.array().square()).sqrt().matrix();  // a^2 + b^2
    a = (0.5 * (sum + imbalance)).cwiseSqrt();
    b = (0.5 * (sum - imbalance)).cwiseSqrt().cwiseProduct(x.cwiseSign());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(spectral_flow)

BOOST_AUTO_TEST_CASE(loss_never_rises) {
  for (const auto& c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow flow = c.flow();
      const auto velocity = [&](const VectorXd& y, VectorXd& rate) { flow.velocity(y, rate); };
      VectorXd y = flow.initial();
      double before = flow.quantity("loss", y);
      const double first = before;
      const int steps = c.is_sampled() ? 500 : 2000;
      for (int n = 0; n < steps; ++n) {
        // Steps far inside the stable range: only the rounding of the loss, a sum of tens of terms, may show.
        spectral_cases::runge_kutta_step(velocity, 0.02, y);
        const double after = flow.quantity("loss", y);
        BOOST_REQUIRE(after <= before + 32 * std::numeric_limits<double>::epsilon() * first);
        before = after;
      }
      BOOST_TEST(before < 0.95 * first);
    }
  }
}

BOOST_AUTO_TEST_CASE(permuting_heads_permutes_the_result) {
  for (auto c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow flow = c.flow();
      const Trajectory plain = sampled(flow, spectral_cases::evolve(flow, 3.0, 300));
      Eigen::PermutationMatrix<Eigen::Dynamic> order(3);
      order.indices() << 2, 0, 1;
      for (Matrix* part : {&c.start.mu, &c.start.omega, &c.start.imbalance_mu, &c.start.imbalance_omega}) {
        *part = Matrix(order * *part);
      }
      const SpectralFlow permuted = c.flow();
      const Trajectory other = sampled(permuted, spectral_cases::evolve(permuted, 3.0, 300));
      check_equal(matrix(other, "mu"), order * matrix(plain, "mu"), rounding);
      check_equal(matrix(other, "omega"), order * matrix(plain, "omega"), rounding);
      BOOST_TEST(std::abs(other["loss"].last()[0] - plain["loss"].last()[0]) <= rounding * plain["loss"].last()[0]);
    }
  }
}

BOOST_AUTO_TEST_CASE(permuting_tasks_permutes_the_result) {
  for (const auto& c : spectral_cases::all()) {
    if (c.is_sampled()) continue;
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow flow = c.flow();
      const Trajectory plain = sampled(flow, spectral_cases::evolve(flow, 3.0, 300));
      auto problem = c.problem;
      std::swap(problem.task_dimensions[0], problem.task_dimensions[1]);
      std::swap(problem.signal_variance[0], problem.signal_variance[1]);
      const auto swap_tasks = [](const Matrix& mu) { return Matrix(mu.rowwise().reverse()); };
      const auto swap_blocks = [&](const Matrix& omega) {
        const int first = c.problem.task_dimensions[0];
        Matrix swapped(omega.rows(), omega.cols());
        swapped << omega.rightCols(omega.cols() - first), omega.leftCols(first);
        return swapped;
      };
      auto start = c.start;
      start.mu = swap_tasks(c.start.mu);
      start.omega = swap_blocks(c.start.omega);
      start.imbalance_mu = swap_tasks(c.start.imbalance_mu);
      start.imbalance_omega = swap_blocks(c.start.imbalance_omega);
      const SpectralFlow permuted = iclflow::make_flow(problem, start, c.closure);
      const Trajectory other = sampled(permuted, spectral_cases::evolve(permuted, 3.0, 300));
      check_equal(matrix(other, "mu"), swap_tasks(matrix(plain, "mu")), rounding);
      check_equal(matrix(other, "omega"), swap_blocks(matrix(plain, "omega")), rounding);
      BOOST_TEST(other["loss_by_task"].last()[0] == plain["loss_by_task"].last()[1],
                 boost::test_tools::tolerance(1e-12));
    }
  }
}

// x -> -x and y -> -y leave the data law alone and turn (mu, omega) of every head into (-mu, -omega). For a head that
// is alone this is the sign change of that head; among other heads only the common change is a symmetry.
BOOST_AUTO_TEST_CASE(changing_the_sign_of_both_circuits_maps_the_flow) {
  for (const auto& full : spectral_cases::all()) {
    if (full.is_sampled()) continue;
    for (const int heads : {1, 3}) {
      BOOST_TEST_CONTEXT(full.name << ", heads = " << heads) {
        auto c = full;
        c.problem.heads = heads;
        for (Matrix* part : {&c.start.mu, &c.start.omega, &c.start.imbalance_mu, &c.start.imbalance_omega}) {
          *part = Matrix(part->topRows(heads));
        }
        const SpectralFlow flow = c.flow();
        auto mirrored = c.start;
        mirrored.mu *= -1.0;
        mirrored.omega *= -1.0;
        const SpectralFlow other = iclflow::make_flow(c.problem, mirrored, c.closure);
        const Trajectory a = sampled(flow, spectral_cases::evolve(flow, 3.0, 300));
        const Trajectory b = sampled(other, spectral_cases::evolve(other, 3.0, 300));
        check_equal(matrix(b, "mu"), -matrix(a, "mu"), rounding);
        check_equal(matrix(b, "omega"), -matrix(a, "omega"), rounding);
        BOOST_TEST(std::abs(a["loss"].last()[0] - b["loss"].last()[0]) <= rounding * a["loss"].last()[0]);
        if (heads > 1) {
          auto one = c.start;
          one.mu.row(0) *= -1.0;
          one.omega.row(0) *= -1.0;
          const SpectralFlow changed = iclflow::make_flow(c.problem, one, c.closure);
          BOOST_TEST(std::abs(changed.quantity("loss", changed.initial()) - flow.quantity("loss", flow.initial())) >
                     1e-4);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(charts_follow_the_factors_themselves) {
  for (const auto& c : spectral_cases::all()) {
    if (c.problem.parametrisation == iclflow::Parametrisation::merged) continue;
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow flow = c.flow(true);
      const auto loss = c.loss(flow.coordinates());
      const VectorXd x = SpectralState{c.start.mu, c.start.omega}.flat();
      const VectorXd imbalance = SpectralState{c.start.imbalance_mu, c.start.imbalance_omega}.flat();
      VectorXd s = VectorXd::Constant(x.size(), c.problem.score_factor());
      s.head(c.start.mu.size()).setOnes();
      // a' = -s b d ell/dx, b' = -s a d ell/dx
      VectorXd gradient;
      const Eigen::Index n = x.size();
      const auto raw = [&](const VectorXd& ab, VectorXd& rate) {
        loss->gradient(s.cwiseProduct(ab.head(n)).cwiseProduct(ab.tail(n)), gradient);
        rate.resize(2 * n);
        rate << -s.cwiseProduct(ab.tail(n)).cwiseProduct(gradient), -s.cwiseProduct(ab.head(n)).cwiseProduct(gradient);
      };
      const Factors factors(x, imbalance, s);
      VectorXd ab(2 * n);
      ab << factors.a, factors.b;
      const auto product = [&](const VectorXd& f) { return s.cwiseProduct(f.head(n)).cwiseProduct(f.tail(n)).eval(); };
      const VectorXd coarse = spectral_cases::runge_kutta(raw, ab, 4.0, 500);
      const VectorXd fine = spectral_cases::runge_kutta(raw, ab, 4.0, 1000);
      const VectorXd chart_coarse = flow.products(spectral_cases::evolve(flow, 4.0, 500));
      const VectorXd chart = flow.products(spectral_cases::evolve(flow, 4.0, 1000));
      // Fourth order: halving the step leaves 1/15 of the difference as error; both routes count, plus rounding.
      const double tolerance =
          ((product(fine) - product(coarse)).cwiseAbs().maxCoeff() + (chart - chart_coarse).cwiseAbs().maxCoeff()) /
              7.0 +
          10 * rounding;
      BOOST_TEST(tolerance < 1e-8);
      BOOST_TEST((product(fine) - chart).cwiseAbs().maxCoeff() <= tolerance);
      const VectorXd conserved = (fine.head(n).array().square() - fine.tail(n).array().square()).matrix();
      BOOST_TEST((conserved - imbalance).cwiseAbs().maxCoeff() < 1e-9);
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_and_all_coordinates_agree) {
  for (const auto& c : spectral_cases::all()) {
    if (c.is_sampled() || c.name.find("blocks") == std::string::npos) continue;
    BOOST_TEST_CONTEXT(c.name) {
      const SpectralFlow blocks = c.flow();
      const SpectralFlow full = c.flow(true);
      BOOST_TEST(blocks.initial().size() == 2 * c.problem.heads * c.problem.tasks());
      BOOST_TEST(full.initial().size() == c.problem.heads * (c.problem.tasks() + c.problem.dimension()));
      // The same steps in the same charts: equal in exact arithmetic.
      const Trajectory a = sampled(blocks, spectral_cases::evolve(blocks, 3.0, 300));
      const Trajectory b = sampled(full, spectral_cases::evolve(full, 3.0, 300));
      for (const char* name : {"mu", "omega", "omega_block"}) check_equal(matrix(a, name), matrix(b, name), rounding);
      BOOST_TEST(std::abs(a["loss"].last()[0] - b["loss"].last()[0]) <= rounding * a["loss"].last()[0]);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_imbalance_that_varies_inside_a_block_needs_all_coordinates) {
  auto c = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.3);
  c.start.imbalance_omega(0, 1) *= 2.0;
  BOOST_TEST(SpectralFlow(c.problem, c.start, "large-context").coordinates().size() == c.problem.dimension());
}

BOOST_AUTO_TEST_CASE(a_product_that_is_zero_and_balanced_stays_zero) {
  auto c = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.0);
  c.start.mu(1, 0) = 0.0;
  const SpectralFlow flow = c.flow();
  const VectorXd y = spectral_cases::evolve(flow, 1.0, 100);
  BOOST_TEST(flow.quantity("mu[1][0]", y) == 0.0);
  VectorXd scale;
  flow.error_scale(y, 0.0, 1e-8, scale);
  BOOST_TEST(std::isinf(scale(2)));
  BOOST_TEST(scale(3) == 1e-8);  // log chart: a relative error of the product is an absolute one of its logarithm
}

BOOST_AUTO_TEST_CASE(names_and_bad_names) {
  const auto c = spectral_cases::make_case("", iclflow::Parametrisation::split, true, 0.0);
  const SpectralFlow flow = c.flow();
  const VectorXd y = flow.initial();
  BOOST_TEST(flow.component(5) == "mu[2][1]");
  BOOST_TEST(flow.component(6) == "omega[0][0]");
  BOOST_TEST(flow.quantity("omega[2][1]", y) == c.start.omega(2, 5), boost::test_tools::tolerance(1e-14));
  BOOST_TEST(flow.quantity("mu[0][1]", y) == c.start.mu(0, 1), boost::test_tools::tolerance(1e-14));
  for (const char* name :
       {"", "mu", "mu[0]", "mu[3][0]", "mu[0][2]", "mu[-1][0]", "omega[0][0]x", "omega[0", "mu[][1]", "losses"}) {
    BOOST_CHECK_THROW(static_cast<void>(flow.quantity(name, y)), std::invalid_argument);
  }
  for (const char* closure : {"large", "exact", "sampled"}) {
    BOOST_CHECK_THROW(SpectralFlow(c.problem, c.start, closure), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_SUITE_END()
