#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "iclflow/spectral/spectral_flow.hpp"
#include "spectral_cases.hpp"

using Eigen::VectorXd;
using iclflow::Coordinates;

namespace {

/// A central difference with the error it may have.
struct Difference {
  double value;
  double tolerance;
};

/// D(h) = (f(+h) - f(-h)) / 2h errs by h^2 f'''/6 + rounding. D(2h) - D(h) is three times the first part; f is a sum of
/// tens of terms as large as `size`, each rounded, which gives the second: 32 eps size / h.
Difference central(const std::function<double(double)>& f, double size) {
  const double h = 2e-5;
  const double one = (f(h) - f(-h)) / (2 * h);
  const double two = (f(2 * h) - f(-2 * h)) / (4 * h);
  return {one, std::abs(two - one) + 32 * std::numeric_limits<double>::epsilon() * size / h};
}

void check(double exact, const Difference& difference) {
  BOOST_TEST(std::abs(exact - difference.value) <= difference.tolerance,
             exact << " against " << difference.value << " +- " << difference.tolerance);
  // The tolerance itself must be sharp, or the comparison proves nothing.
  BOOST_TEST(difference.tolerance < 1e-7 * (1.0 + std::abs(exact)));
}

VectorXd shifted(const VectorXd& x, Eigen::Index j, double h) {
  VectorXd y = x;
  y(j) += h;
  return y;
}

VectorXd flat(const spectral_cases::Case& c, const Coordinates& coordinates, const iclflow::SpectralFlow& flow) {
  const VectorXd x = flow.products(flow.initial());
  BOOST_REQUIRE(x.size() == c.problem.heads * (c.problem.tasks() + coordinates.size()));
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spectral_derivatives)

BOOST_AUTO_TEST_CASE(gradient_is_the_derivative_of_the_loss) {
  for (const auto& c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const iclflow::SpectralFlow flow = c.flow();
      const auto loss = c.loss(flow.coordinates());
      const VectorXd x = flat(c, flow.coordinates(), flow);
      VectorXd gradient;
      loss->gradient(x, gradient);
      for (Eigen::Index j = 0; j < x.size(); ++j) {
        check(gradient(j), central([&](double h) { return loss->value(shifted(x, j, h)); }, loss->value(x)));
      }
      BOOST_TEST(loss->by_task(x).sum() == loss->value(x));
    }
  }
}

BOOST_AUTO_TEST_CASE(hessian_vector_is_the_derivative_of_the_gradient) {
  for (const auto& c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const iclflow::SpectralFlow flow = c.flow();
      const auto loss = c.loss(flow.coordinates());
      const VectorXd x = flat(c, flow.coordinates(), flow);
      const VectorXd direction = (x.array() * 3.0 + 0.2).cos().matrix();
      VectorXd product;
      VectorXd gradient;
      loss->hessian_vector(x, direction, product);
      for (Eigen::Index j = 0; j < x.size(); ++j) {
        const auto along = [&](double h) {
          loss->gradient(x + h * direction, gradient);
          return gradient(j);
        };
        check(product(j), central(along, std::abs(along(0.0)) + 1.0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(velocity_is_minus_mobility_times_gradient) {
  for (const auto& c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const iclflow::SpectralFlow flow = c.flow(true);
      const auto loss = c.loss(flow.coordinates());
      const VectorXd y = flow.initial();
      const VectorXd x = flow.products(y);
      VectorXd rate;
      flow.velocity(y, rate);
      const auto imbalance = iclflow::SpectralState{c.start.imbalance_mu, c.start.imbalance_omega}.flat();
      for (Eigen::Index j = 0; j < x.size(); ++j) {
        // dx/dt through the chart, the chart's slope itself by differences
        const auto chart = central([&](double h) { return flow.products(shifted(y, j, h))(j); }, std::abs(x(j)) + 1.0);
        const auto slope = central([&](double h) { return loss->value(shifted(x, j, h)); }, loss->value(x));
        const double s = j < c.start.mu.size() ? 1.0 : c.problem.score_factor();
        const double m = c.problem.parametrisation == iclflow::Parametrisation::merged
                             ? 1.0
                             : s * std::sqrt(s * s * imbalance(j) * imbalance(j) + 4 * x(j) * x(j));
        check(-m * slope.value, {chart.value * rate(j), m * slope.tolerance + std::abs(rate(j)) * chart.tolerance});
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(jacobian_is_the_derivative_of_the_velocity) {
  for (const auto& c : spectral_cases::all()) {
    BOOST_TEST_CONTEXT(c.name) {
      const iclflow::SpectralFlow flow = c.flow();
      const VectorXd y = flow.initial();
      Eigen::MatrixXd jacobian;
      flow.jacobian(y, jacobian);
      VectorXd rate;
      for (Eigen::Index j = 0; j < y.size(); ++j) {
        for (Eigen::Index i = 0; i < y.size(); ++i) {
          const auto along = [&](double h) {
            flow.velocity(shifted(y, j, h), rate);
            return rate(i);
          };
          check(jacobian(i, j), central(along, std::abs(along(0.0)) + 1.0));
        }
      }
      const VectorXd direction = VectorXd::LinSpaced(y.size(), -1.0, 2.0);
      VectorXd product;
      flow.jacobian_product(y, direction, product);
      // two orders of summation of the same terms
      BOOST_TEST((product - jacobian * direction).norm() < 1e-12 * (1.0 + jacobian.norm() * direction.norm()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
