#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

using iclflow::Parametrisation;
using iclflow::Problem;

namespace {

/// Times at which the integrated flow has lost 5, 50, 95 % of its loss above the dedicated limit.
std::vector<double> integrated_times(const Problem& problem, const iclflow::InitialState& start) {
  const iclflow::SpectralFlow flow(problem, start, "large-context");
  const double first = flow.quantity("loss", flow.initial());
  const double last = iclflow::dedicated_limit(problem)->loss;
  std::vector<iclflow::Event> events;
  for (const double fraction : {0.05, 0.50, 0.95}) {
    events.push_back({"loss", first - fraction * (first - last), iclflow::Direction::falling, fraction == 0.95});
  }
  const auto outcome = iclflow::integrate(flow, {0.0, 1e6}, {}, events);
  BOOST_REQUIRE(outcome.trajectory.events.size() == 3);
  std::vector<double> times;
  for (const auto& event : outcome.trajectory.events) times.push_back(event.time);
  return times;
}

/// The claim of the closed forms is 1 %; the integration's own error is 1e-7.
void check_times(const Problem& problem, const iclflow::InitialState& start) {
  const auto predicted = iclflow::warm_up_times(problem, start).at(0);
  const auto times = integrated_times(problem, start);
  BOOST_REQUIRE(predicted.has_value());
  BOOST_TEST(predicted->head == 0);
  BOOST_TEST(std::abs(predicted->warm_up_end / times[0] - 1.0) < 0.01, predicted->warm_up_end << " " << times[0]);
  BOOST_TEST(std::abs(predicted->emergence_time / times[1] - 1.0) < 0.01, predicted->emergence_time << " " << times[1]);
  BOOST_REQUIRE(predicted->emergence_end.has_value());
  BOOST_TEST(std::abs(*predicted->emergence_end / times[2] - 1.0) < 0.01, *predicted->emergence_end << " " << times[2]);
}

/// score_factor 1/sqrt(d + I) = 0.2 for 24 + 1 and 23 + 2 directions.
Problem problem_of(Parametrisation parametrisation, int heads, int dimension, int tasks, bool scaled) {
  Problem p;
  p.heads = heads;
  p.task_dimensions.assign(static_cast<std::size_t>(tasks), dimension);
  p.signal_variance.assign(static_cast<std::size_t>(tasks), 1.0);
  p.context_length = 100 * dimension;
  p.parametrisation = parametrisation;
  if (scaled) p.score_scale = iclflow::ScoreScale::inverse_sqrt_embedding;
  return p;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(closed_forms_warm_up)

BOOST_AUTO_TEST_CASE(one_head_on_one_task) {
  for (const double scale : {0.1, 0.01, 0.001}) {
    BOOST_TEST_CONTEXT("scale " << scale) {
      for (const bool scaled : {false, true}) {
        const Problem split = problem_of(Parametrisation::split, 1, 24, 1, scaled);
        BOOST_REQUIRE(!scaled || std::abs(split.score_factor() - 0.2) < 1e-15);
        check_times(split, iclflow::aligned_start(split, scale, 1.0));
      }
      const Problem merged = problem_of(Parametrisation::merged, 1, 10, 1, false);
      check_times(merged, iclflow::aligned_start(merged, scale, 1.0));
    }
  }
}

BOOST_AUTO_TEST_CASE(rivals_and_noise) {
  for (const double scale : {0.1, 0.01}) {
    for (const bool scaled : {false, true}) {
      BOOST_TEST_CONTEXT("scale " << scale << ", scaled " << scaled) {
        Problem problem = problem_of(Parametrisation::split, 3, 8, 2, scaled);
        problem.noise_variance = 0.05;
        check_times(problem, iclflow::aligned_start(problem, scale / 4, 4.0));
      }
    }
  }
}

// Several merged heads end as one shared head, not as dedicated ones: the early phases hold, the last is not claimed.
BOOST_AUTO_TEST_CASE(shared_merged_heads) {
  const Problem problem = problem_of(Parametrisation::merged, 3, 10, 2, false);
  const auto start = iclflow::aligned_start(problem, 0.01, 2.0);
  const auto predicted = iclflow::warm_up_times(problem, start).at(0);
  const auto times = integrated_times(problem, start);
  BOOST_REQUIRE(predicted.has_value());
  BOOST_TEST(std::abs(predicted->warm_up_end / times[0] - 1.0) < 0.01);
  BOOST_TEST(std::abs(predicted->emergence_time / times[1] - 1.0) < 0.01);
  BOOST_TEST(!predicted->emergence_end.has_value());
}

BOOST_AUTO_TEST_CASE(small_starts_emerge_on_one_profile) {
  // (atanh z - 1/z)/2 at z^2 = 1 - sqrt(1 - f), rounded to 3 decimals
  BOOST_TEST(std::abs(iclflow::emergence_offset(0.05) + 3.062) < 5e-4);
  BOOST_TEST(std::abs(iclflow::emergence_offset(0.50) + 0.621) < 5e-4);
  BOOST_TEST(std::abs(iclflow::emergence_offset(0.95) - 0.123) < 5e-4);
  // The width is independent of the scale; L -> inf leaves the profile alone, the start enters at order scale^2.
  Problem problem = problem_of(Parametrisation::split, 1, 24, 1, true);
  problem.context_length = 16'000'000;
  const double unit = std::sqrt(24 / 0.2) / problem.signal_power(0);
  for (const double scale : {1e-3, 1e-4}) {
    const auto times = iclflow::warm_up_times(problem, iclflow::aligned_start(problem, scale, 1.0)).at(0).value();
    const double width = (*times.emergence_end - times.warm_up_end) / unit;
    const double imbalance = scale * (24 / 0.2 - 1) / std::sqrt(24 / 0.2);  // c in units of the profile's Omega
    BOOST_TEST(std::abs(width - (iclflow::emergence_offset(0.95) - iclflow::emergence_offset(0.05))) < 3 * imbalance);
  }
}

BOOST_AUTO_TEST_CASE(empty_where_the_formulas_do_not_apply) {
  const Problem problem = problem_of(Parametrisation::split, 2, 5, 2, false);
  const auto start = iclflow::aligned_start(problem, 0.01, 2.0);
  const auto check_empty = [&](iclflow::InitialState changed) {
    const auto times = iclflow::warm_up_times(problem, changed);
    BOOST_TEST(!times.at(0).has_value());
    BOOST_TEST(times.at(1).has_value());
  };
  auto changed = start;
  changed.mu.col(0) *= -1.0;  // no positive winner
  check_empty(changed);
  changed = start;
  changed.omega(0, 0) = -changed.omega(0, 0);  // not constant on the block
  check_empty(changed);
  changed = start;
  changed.imbalance_mu(1, 0) = 0.1;
  check_empty(changed);
  changed = start;
  changed.omega.row(1).head(5) *= 30.0;  // head 1 emerges before the head with the largest mu
  check_empty(changed);
}

BOOST_AUTO_TEST_SUITE_END()
