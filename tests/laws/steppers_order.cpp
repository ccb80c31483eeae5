#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>

#include "iclflow/integrate/ode.hpp"
#include "unit/integrate_systems.hpp"

namespace {

using iclflow::StepperOptions;

/// Largest error at t = 3 after `count` equal steps. Adaptive methods are held at one step size by tolerances so loose
/// that every step is taken and by the cap on the step.
double error_after(const iclflow::StepperInfo& info, int count) {
  const iclflow_tests::Field field = iclflow_tests::logistic_and_rotation();
  StepperOptions options;
  options.stepper = std::string(info.name);
  options.step = 3.0 / count;
  options.maximum_step = 3.0 / count;
  options.relative_tolerance = 1e6;
  options.absolute_tolerance = 1e6;
  const iclflow::Outcome outcome = integrate(field, {0.0, 3.0}, options);
  BOOST_TEST_REQUIRE(outcome.steps == static_cast<std::uint64_t>(count));
  const Eigen::VectorXd error =
      iclflow_tests::state_at(outcome.trajectory, 1) - iclflow_tests::logistic_and_rotation_at(3.0);
  return error.cwiseAbs().maxCoeff();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(steppers)

// Error model: e(h) = C h^p (1 + a h + O(h^2)), so the slope over (h, h/2) is p + a h / (2 ln 2) + O(h^2) and the next
// slope differs from p by half as much. Their difference therefore bounds the last one's distance from p, up to
// O(h^2), for which it is doubled; rounding adds about 1e-15 / e. The difference itself must be small, or nothing is
// shown.
void check_order(const iclflow::StepperInfo& info) {
  const int coarse = info.order >= 8 ? 4 : info.order >= 4 ? 16 : 256;
  const double first = error_after(info, coarse);
  const double second = error_after(info, 2 * coarse);
  const double third = error_after(info, 4 * coarse);
  const double slope_before = std::log2(first / second);
  const double slope = std::log2(second / third);
  const double spread = std::abs(slope - slope_before);
  BOOST_TEST_MESSAGE(info.name << ": errors " << first << ' ' << second << ' ' << third << ", slopes " << slope_before
                               << ' ' << slope);
  BOOST_TEST(spread < 0.3);
  BOOST_TEST(std::abs(slope - info.order) < 2.0 * spread + 2e-15 / third + 1e-3);
}

BOOST_AUTO_TEST_CASE(the_error_of_each_falls_with_its_stated_order) {
  BOOST_TEST_REQUIRE(iclflow::steppers().size() == (iclflow::has_cvode() ? 10U : 9U));
  for (const iclflow::StepperInfo& info : iclflow::steppers()) {
    if (info.name == "cvode") continue;  // has no order of its own
    BOOST_TEST_CONTEXT(info.name) check_order(info);
  }
}

BOOST_AUTO_TEST_SUITE_END()
