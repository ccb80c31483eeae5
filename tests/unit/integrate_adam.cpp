#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

#include "iclflow/integrate/adam.hpp"

namespace {

using iclflow::AdamOptions;
using iclflow::AdamRule;

/// Loss sum_i c_i theta_i^2 / 2 with slopes that depend on the step besides.
class Bowl final : public iclflow::DescentSystem {
 public:
  [[nodiscard]] Eigen::VectorXd initial() const override { return Eigen::Vector3d(1.0, -2.0, 0.5); }
  void declare(iclflow::Trajectory& run) const override { run.declare("loss", "half the weighted square"); }
  void observe(const Eigen::VectorXd& theta, iclflow::Trajectory& run) const override {
    run.append(0, quantity("loss", theta));
  }
  [[nodiscard]] double quantity(const std::string&, const Eigen::VectorXd& theta) const override {
    return 0.5 * theta.squaredNorm();
  }
  void gradient(std::uint64_t step, const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) const override {
    gradient = Eigen::Vector3d(3.0, 0.1, 1e-9).cwiseProduct(theta);
    gradient[1] += 0.3 * std::sin(static_cast<double>(step));
  }
};

AdamOptions options() { return {{0.02, 10, 50, 0.001}, 0.9, 0.999, 1e-8, 0.05, 0.7}; }

std::vector<double> steps(int count) {
  std::vector<double> all;
  for (int k = 0; k <= count; k += 10) all.push_back(k);
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(integrate_adam)

BOOST_AUTO_TEST_CASE(rate_rises_linearly_and_falls_by_half_a_cosine) {
  const iclflow::LearningRate rate{3e-4, 1000, 20000, 1e-5};
  BOOST_TEST(rate.at(0) == 0.0);
  BOOST_TEST(std::abs(rate.at(500) - 1.5e-4) < 1e-18);
  BOOST_TEST(rate.at(1000) == 3e-4);
  BOOST_TEST(std::abs(rate.at(10500) - 0.5 * (3e-4 + 1e-5)) < 1e-16);  // half way down
  BOOST_TEST(rate.at(20000) == 1e-5);
  BOOST_TEST(rate.at(1'000'000) == 1e-5);
  BOOST_TEST((iclflow::LearningRate{1e-4, 0, 0, 0.0}).at(0) == 1e-4);
}

// The textbook's recursion with its sums written out: m_t = (1 - b) sum_s b^(t-s) g_s, and likewise v_t.
BOOST_AUTO_TEST_CASE(steps_are_those_of_the_textbook) {
  const AdamOptions o = options();
  AdamRule rule(o);
  const Bowl bowl;
  Eigen::VectorXd theta = bowl.initial();
  Eigen::VectorXd next, gradient;
  std::vector<Eigen::ArrayXd> slopes;
  for (std::uint64_t step = 0; step < 40; ++step) {
    bowl.gradient(step, theta, gradient);
    slopes.emplace_back(gradient.array().max(-0.7).min(0.7));
    rule.advance(step, theta, gradient, next);
    Eigen::ArrayXd first = Eigen::ArrayXd::Zero(3);
    Eigen::ArrayXd second = Eigen::ArrayXd::Zero(3);
    for (std::size_t s = 0; s < slopes.size(); ++s) {
      const double age = static_cast<double>(slopes.size() - 1 - s);
      first += 0.1 * std::pow(0.9, age) * slopes[s];
      second += 0.001 * std::pow(0.999, age) * slopes[s].square();
    }
    const double count = static_cast<double>(step + 1);
    first /= 1.0 - std::pow(0.9, count);
    second /= 1.0 - std::pow(0.999, count);
    const Eigen::VectorXd expected =
        theta - o.rate.at(step) * (first / (second.sqrt() + 1e-8) + 0.05 * theta.array()).matrix();
    BOOST_TEST((next - expected).lpNorm<Eigen::Infinity>() < 1e-14);  // rounding of forty terms of order one
    theta = next;
  }
}

BOOST_AUTO_TEST_CASE(resumed_descent_retraces_the_same_bits) {
  const Bowl bowl;
  AdamRule whole(options());
  const iclflow::Outcome expected = iclflow::descend(bowl, whole, steps(60));
  AdamRule first(options());
  iclflow::Control control;
  int polls = 0;
  control.interrupted = [&] { return ++polls > 33; };
  const iclflow::Outcome part = iclflow::descend(bowl, first, steps(60), {}, control);
  BOOST_REQUIRE(part.status == iclflow::Status::interrupted);
  AdamRule second(options());
  iclflow::Control again;
  again.resume = part.last;
  again.resume->trajectory = part.trajectory;
  const iclflow::Outcome rest = iclflow::descend(bowl, second, steps(60), {}, again);
  BOOST_TEST(rest.trajectory["loss"].values == expected.trajectory["loss"].values, boost::test_tools::per_element());
  BOOST_TEST((rest.last.state.array() == expected.last.state.array()).all());
}

BOOST_AUTO_TEST_CASE(what_is_not_a_number_is_not_hidden_by_the_clip) {
  AdamRule rule(options());
  Eigen::VectorXd next;
  rule.advance(1, Eigen::Vector2d(1.0, 1.0), Eigen::Vector2d(std::nan(""), 1.0), next);
  BOOST_TEST(std::isnan(next[0]));
  BOOST_CHECK_THROW(rule.remember({1.0, 2.0, 3.0}), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
