#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/analysis/ends.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/emergence_order.hpp"
#include "iclflow/spectral/superposition.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(analysis_ends)

BOOST_AUTO_TEST_CASE(every_end_has_its_name) {
  const auto ends_of = [](const Matrix& mu, const Matrix& omega) { return classify_ends(mu, omega); };
  // Task 0 by head 0, task 1 by head 1; what is left of the others is below 1 %.
  BOOST_TEST((ends_of(Matrix{{2.0, 0.01}, {0.01, 2.0}}, Matrix{{0.5, 0.0}, {0.0, 0.5}}) ==
              std::vector<End>(2, End::dedicated)));
  BOOST_TEST((ends_of(Matrix{{2.0, 2.0}, {0.01, -0.01}}, Matrix{{0.5, 0.5}, {0.3, 0.3}}) ==
              std::vector<End>(2, End::superposed)));
  // A head that shares one task may still serve another: neither is superposed.
  BOOST_TEST((ends_of(Matrix{{2.0, 1.0}, {0.0, 1.0}}, Matrix{{0.5, 0.5}, {0.0, 0.5}}) ==
              std::vector<End>{End::dedicated, End::shared}));
  BOOST_TEST((ends_of(Matrix{{5.0}, {-4.5}}, Matrix{{0.1}, {-0.1}})[0] == End::zero_sum));
  BOOST_TEST((ends_of(Matrix{{5.0}, {-2.0}}, Matrix{{0.2}, {-0.1}})[0] == End::opposed));
  BOOST_TEST((ends_of(Matrix{{1.0}, {1.0}}, Matrix{{0.2}, {0.2}})[0] == End::unlearned));
  BOOST_TEST((ends_of(Matrix{{0.0}}, Matrix{{1.0}})[0] == End::unlearned));
  for (int k = 0; k < end_count; ++k) BOOST_TEST(!name(static_cast<End>(k)).empty());
  BOOST_CHECK_THROW(static_cast<void>(ends_of(Matrix{{1.0}}, Matrix{{1.0, 1.0}})), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(emerging_heads_are_those_ahead_at_half_of_the_bias) {
  Trajectory run;
  const std::size_t mu = run.declare("mu", "", {"head", "task"}, {2, 2});
  const std::size_t omega = run.declare("omega_block", "", {"head", "task"}, {2, 2});
  const auto sample = [&](std::vector<double> values) {
    run.times.push_back(static_cast<double>(run.times.size()));
    run.append(mu, values);
    run.append(omega, std::vector<double>(4, 1.0));
  };
  sample({0.1, 0.05, 0.19, 0.05});  // sums 0.29, 0.1: below 1 - 1/sqrt(2) = 0.2929
  sample({0.1, 0.05, 0.20, 0.05});  // task 0 emerges on head 1
  sample({0.9, 0.05, 0.10, 0.20});  // what overtakes later does not count
  const auto heads = emerging_heads(run);
  BOOST_TEST((heads[0] == 1));
  BOOST_TEST(!heads[1].has_value());
}

BOOST_AUTO_TEST_CASE(order_of_emergence) {
  Problem p;
  p.heads = 3;
  p.task_dimensions = {4};
  p.context_length = 100;
  const auto order = [&](const Matrix& mu, const Matrix& omega) {
    return emergence_order(p, balanced_start(p, mu, omega));
  };
  // d omega = 0.4, 0.8, -0.4: logarithmic means 0.4, 0.4 / ln 2, and none for a negative product.
  const Matrix found = order(Matrix{{0.4}, {0.4}, {0.4}}, Matrix{{0.1}, {0.2}, {-0.1}}).value();
  BOOST_TEST(found(0, 0) == 0.4, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(found(1, 0) == 0.4 / std::log(2.0), boost::test_tools::tolerance(1e-14));
  BOOST_TEST(found(2, 0) == 0.0);
  auto start = balanced_start(p, Matrix::Constant(3, 1, 0.1), Matrix::Constant(3, 1, 0.1));
  start.imbalance_mu(0, 0) = 0.1;
  BOOST_TEST(!emergence_order(p, start).has_value());
  // Merged: the growing mode (mu + sqrt(d) omega) / 2, of whatever sign.
  p.parametrisation = Parametrisation::merged;
  const Matrix merged = order(Matrix{{0.4}, {0.4}, {-0.4}}, Matrix{{0.1}, {-0.2}, {-0.1}}).value();
  BOOST_TEST((merged - Matrix{{0.3}, {0.0}, {0.3}}).norm() < 1e-15);
}

BOOST_AUTO_TEST_CASE(random_starts_of_one_sign_and_equal_omega) {
  Problem p;
  p.heads = 3;
  p.task_dimensions = {2, 2};
  p.signal_variance = {1.0, 1.0};
  const auto any = random_start(p, 0.1, 5);
  BOOST_TEST((any.mu.minCoeff() < 0.0 && any.omega.minCoeff() < 0.0));
  const auto positive = random_start(p, 0.1, 5, true);
  BOOST_TEST((positive.mu == any.mu.cwiseAbs() && positive.omega == any.omega.cwiseAbs()));
  const auto equal = random_start(p, 0.1, 5, false, true);
  BOOST_TEST((equal.mu == any.mu && (equal.omega.array() == 0.1).all()));
}

BOOST_AUTO_TEST_CASE(superposition_of_one_or_all) {
  Problem p;
  p.heads = 2;
  p.task_dimensions = {4, 6};
  p.signal_variance = {1.0, 2.0};
  p.noise_variance = 0.1;
  p.context_length = 100;
  BOOST_TEST(superposed_limit(p, {0, 1}).loss == dedicated_limit(p)->loss, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(superposed_limit(p, {1, 1}).loss == best_single_head(p).loss, boost::test_tools::tolerance(1e-12));
  BOOST_CHECK_THROW(static_cast<void>(superposed_limit(p, {0})), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(superposed_limit(p, {0, 2})), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
