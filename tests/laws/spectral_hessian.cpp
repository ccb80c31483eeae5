#include <boost/test/unit_test.hpp>
#include <limits>

#include "laws/spectral_cases.hpp"

BOOST_AUTO_TEST_SUITE(spectral_hessian)

// The same sums in another order: some 100 roundings of entries of the size of the largest.
BOOST_AUTO_TEST_CASE(the_whole_hessian_is_its_products_with_all_directions) {
  for (const auto& c : spectral_cases::of_large_context()) {
    BOOST_TEST_CONTEXT(c.name) {
      const auto flow = c.flow();
      const auto loss = c.loss(flow.coordinates());
      const Eigen::VectorXd x = flow.products(flow.initial());
      Eigen::MatrixXd fast;
      loss->hessian(x, fast);
      Eigen::MatrixXd plain;
      loss->PopulationLoss::hessian(x, plain);
      const double rounding = 100.0 * std::numeric_limits<double>::epsilon() * plain.cwiseAbs().maxCoeff();
      BOOST_TEST((fast - plain).cwiseAbs().maxCoeff() < rounding);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_jacobian_of_the_flow_has_a_symmetric_form) {
  for (const auto& c : spectral_cases::of_large_context()) {
    BOOST_TEST_CONTEXT(c.name) {
      const auto flow = c.flow();
      const Eigen::VectorXd y = flow.initial();
      Eigen::MatrixXd derivative;
      flow.jacobian(y, derivative);
      Eigen::MatrixXd matrix;
      Eigen::VectorXd scale;
      BOOST_TEST_REQUIRE(flow.symmetrised_jacobian(y, matrix, scale));
      const double rounding = 100.0 * std::numeric_limits<double>::epsilon();
      BOOST_TEST((matrix - matrix.transpose()).cwiseAbs().maxCoeff() < rounding * matrix.cwiseAbs().maxCoeff());
      const Eigen::MatrixXd back = -(scale.asDiagonal() * matrix * scale.cwiseInverse().asDiagonal());
      BOOST_TEST((back - derivative).cwiseAbs().maxCoeff() < rounding * derivative.cwiseAbs().maxCoeff());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
