#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <vector>

#include "iclflow/analysis/comparison.hpp"

BOOST_AUTO_TEST_SUITE(analysis_comparison)

using iclflow::Band;
using iclflow::DynamicsResult;
using iclflow::Trajectory;

namespace {

constexpr double rounding = 1e-13;

// loss falls from 10 along a straight line, mu = (t, 2), omega_block = (1, t), each plus `shift`.
Trajectory straight(const std::vector<double>& times, double shift) {
  Trajectory run;
  const auto loss = run.declare("loss", "population loss");
  const auto mu = run.declare("mu", "output-value", {"head", "task"}, {2, 1});
  const auto omega = run.declare("omega_block", "key-query", {"head", "task"}, {2, 1});
  for (const double t : times) {
    run.times.push_back(t);
    run.append(loss, 10.0 - t + shift);
    run.append(mu, std::vector<double>{t + shift, 2.0 - shift});
    run.append(omega, std::vector<double>{1.0, t - 2.0 * shift});
  }
  return run;
}

DynamicsResult result(std::vector<Trajectory> members) {
  DynamicsResult value;
  value.members = std::move(members);
  return value;
}

std::vector<double> grid(int intervals, double end) {
  std::vector<double> times;
  for (int k = 0; k <= intervals; ++k) times.push_back(end * k / intervals);
  return times;
}

}  // namespace

BOOST_AUTO_TEST_CASE(band_of_three_seeds) {
  const auto times = grid(4, 8.0);
  const Band band =
      iclflow::seed_band(result({straight(times, 0.0), straight(times, 1.0), straight(times, 2.0)}), "mu");
  BOOST_TEST(band.width == 2U);
  BOOST_TEST(band.times.size() == 5U);
  BOOST_TEST(std::abs(band.mean[2 * 1 + 0] - 3.0) < rounding);
  BOOST_TEST(std::abs(band.mean[2 * 1 + 1] - 1.0) < rounding);
  // deviation 1 over three members: 1 / sqrt(3)
  for (const double error : band.standard_error) BOOST_TEST(std::abs(error - 1.0 / std::sqrt(3.0)) < rounding);
}

BOOST_AUTO_TEST_CASE(band_stops_where_the_first_member_stops) {
  Trajectory shorter = straight(grid(2, 4.0), 1.0);
  const DynamicsResult run = result({straight(grid(4, 8.0), 0.0), shorter, Trajectory{}});
  const Band band = iclflow::seed_band(run, "loss");
  BOOST_TEST(band.times == grid(2, 4.0), boost::test_tools::per_element());
  BOOST_TEST(std::abs(band.mean[2] - 6.5) < rounding);
  BOOST_TEST(iclflow::seed_band(result({straight(grid(2, 1.0), 0.0)}), "loss").standard_error[1] == 0.0);
  BOOST_TEST(iclflow::seed_band(result({Trajectory{}}), "loss").times.empty());
  BOOST_CHECK_THROW(static_cast<void>(iclflow::seed_band(run, "omega")), std::out_of_range);
}

BOOST_AUTO_TEST_CASE(gaps_of_shifted_lines_are_exact) {
  const DynamicsResult theory = result({straight(grid(8, 8.0), 0.0)});
  const DynamicsResult simulation = result({straight(grid(5, 8.0), 0.1), straight(grid(5, 8.0), 0.3)});
  const iclflow::Comparison gaps = iclflow::compare(theory, simulation, 2.0);
  BOOST_TEST(std::abs(gaps.loss_gap.value - 0.02) < rounding);  // mean shift 0.2 over 10
  BOOST_TEST(std::abs(*gaps.loss_gap.standard_error - 0.01) < rounding);
  BOOST_TEST(std::abs(gaps.loss_gap_max.value - 0.02) < rounding);
  BOOST_TEST(std::abs(gaps.mu_gap.value - 0.2 / 8.0) < rounding);     // theory's largest final mu is 8
  BOOST_TEST(std::abs(gaps.omega_gap.value - 0.4 / 8.0) < rounding);  // omega is shifted twice as much
  // half of 10 - 2 is gone at t = 4 and, 0.2 higher, at 4.2
  BOOST_TEST_REQUIRE(gaps.emergence_time_gap.has_value());
  // the level moves with the simulation's own start: 10.2 - 0.5 (10.2 - 2) = 6.1, reached at 4.1
  BOOST_TEST(std::abs(gaps.emergence_time_gap->value - 0.1 / 4.0) < rounding);
  BOOST_TEST(std::abs(*gaps.emergence_time_gap->standard_error - 0.05 / 4.0) < rounding);
}

BOOST_AUTO_TEST_CASE(gaps_of_unequal_members_and_single_seeds) {
  const DynamicsResult theory = result({straight(grid(8, 8.0), 0.0)});
  const DynamicsResult one = result({straight(grid(16, 8.0), 0.5)});
  BOOST_TEST(!iclflow::compare(theory, one, 2.0).loss_gap.standard_error.has_value());
  // interrupted at t = 3, before the emergence, the second seed not begun
  const DynamicsResult cut = result({straight(grid(3, 3.0), 0.5), Trajectory{}});
  const iclflow::Comparison gaps = iclflow::compare(theory, cut, 2.0);
  BOOST_TEST(std::abs(gaps.loss_gap.value - 0.05) < rounding);
  BOOST_TEST(!gaps.emergence_time_gap.has_value());
  BOOST_CHECK_THROW(static_cast<void>(iclflow::compare(theory, result({Trajectory{}}), 2.0)), std::invalid_argument);
  BOOST_CHECK_THROW(static_cast<void>(iclflow::compare(result({}), one, 2.0)), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(times_beyond_the_theory_are_left_out) {
  const DynamicsResult theory = result({straight(grid(4, 4.0), 0.0)});
  Trajectory longer = straight(grid(4, 4.0), 0.0);
  const Trajectory beyond = straight({4.02, 8.0}, 0.0);  // a step that rounds past the end, and a time without theory
  longer.times.insert(longer.times.end(), beyond.times.begin(), beyond.times.end());
  for (std::size_t k = 0; k < longer.observables.size(); ++k) {
    longer.observables[k].values.insert(longer.observables[k].values.end(), beyond.observables[k].values.begin(),
                                        beyond.observables[k].values.end());
  }
  // at 4.02 the theory holds its last value: difference 0.02 over 10
  const iclflow::Comparison gaps = iclflow::compare(theory, result({longer}), 0.0);
  BOOST_TEST(std::abs(gaps.loss_gap_max.value - 0.002) < rounding);
  const Band difference = iclflow::loss_difference(theory, result({longer}));
  BOOST_TEST(difference.times.size() == 6U);
  BOOST_TEST(std::abs(difference.mean[5] + 0.002) < rounding);
}

BOOST_AUTO_TEST_CASE(a_diverged_simulation_is_infinitely_far) {
  const DynamicsResult theory = result({straight(grid(8, 8.0), 0.0)});
  Trajectory diverged = straight(grid(8, 8.0), 0.0);
  diverged.observables[0].values[7] = std::nan("");
  const iclflow::Comparison gaps = iclflow::compare(theory, result({diverged}), 2.0);
  BOOST_TEST(std::isinf(gaps.loss_gap.value));
  BOOST_TEST(gaps.mu_gap.value < rounding);
}

BOOST_AUTO_TEST_CASE(interpolation_error_is_that_of_the_cubic) {
  // theory exp(-t) on a grid of 0.1 against the same curve at other times: error at most h^2 max|slope error| / 4; the
  // harmonic slope errs by about h^2 |f'''| / 3 + h^2 f''^2 / (4 f'), so 7/12 h^2 at the start, and h / 4 of
  // it: 1.5e-4.
  const auto curve = [](const std::vector<double>& times) {
    Trajectory run = straight(times, 0.0);
    for (std::size_t k = 0; k < times.size(); ++k) run.observables[0].values[k] = std::exp(-times[k]);
    return run;
  };
  const iclflow::Comparison gaps =
      iclflow::compare(result({curve(grid(40, 4.0))}), result({curve(grid(57, 4.0))}), 0.0);
  BOOST_TEST(gaps.loss_gap_max.value < 1.5e-4);
  BOOST_TEST(gaps.loss_gap_max.value > 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
