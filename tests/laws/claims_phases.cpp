// Claim (a): three phases; the warm-up grows as the inverse of the initial scale (split) or its logarithm (merged),
// while the width of the emergence does not depend on it.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>

#include "iclflow/analysis/phases.hpp"
#include "iclflow/analysis/power_law.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "support/both.hpp"

using namespace iclflow;

namespace {

struct Times {
  double warm_up_end, emergence, emergence_end;
  [[nodiscard]] double width() const { return emergence_end - warm_up_end; }
};

/// 5, 50, 95 % of the loss above the dedicated limit gone, located as events.
Times integrated(const Problem& problem, const InitialState& start) {
  const SpectralFlow flow(problem, start, "large-context");
  const double first = flow.quantity("loss", flow.initial());
  const double last = dedicated_limit(problem)->loss;
  std::vector<Event> events;
  for (const double f : phase_fractions) {
    events.push_back({"loss", first - f * (first - last), Direction::falling, f == 0.95});
  }
  const auto found = integrate(flow, {0.0, 1e7}, {}, events).trajectory.events;
  BOOST_REQUIRE(found.size() == 3);
  return {found[0].time, found[1].time, found[2].time};
}

/// One head on one task of dimension d. Contexts so long that damping, of relative order phi d / L, is out of sight.
Problem one_head(Parametrisation parametrisation, int d, int context_length = 100'000'000) {
  Problem p;
  p.task_dimensions = {d};
  p.context_length = context_length;
  p.response_scale = ResponseScale::unit;
  p.signal_variance = {0.4};
  p.parametrisation = parametrisation;
  return p;
}

/// mu = 2 scale, d omega / s_w = scale (split); mu = 2 scale, sqrt(d) omega = scale (merged).
InitialState small_start(const Problem& p, double scale) {
  const double d = p.task_dimensions[0];
  const bool split = p.parametrisation == Parametrisation::split;
  const double omega = split ? scale * p.score_factor() / d : scale / std::sqrt(d);
  return balanced_start(p, Matrix::Constant(1, 1, 2.0 * scale), Matrix::Constant(1, 1, omega));
}

/// Largest relative distance of y from the least-squares line a + b f(x).
double misfit(const std::vector<double>& x, const std::vector<double>& y, const std::function<double(double)>& f,
              const std::function<double(double)>& g, const std::function<double(double)>& inverse) {
  const auto n = static_cast<double>(x.size());
  double sx = 0.0, sy = 0.0, sxx = 0.0, sxy = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    sx += f(x[k]) / n;
    sy += g(y[k]) / n;
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    sxx += (f(x[k]) - sx) * (f(x[k]) - sx);
    sxy += (f(x[k]) - sx) * (g(y[k]) - sy);
  }
  double worst = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double fitted = inverse(sy + sxy / sxx * (f(x[k]) - sx));
    worst = std::max(worst, std::abs(fitted / y[k] - 1.0));
  }
  return worst;
}
double power_misfit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto log = [](double v) { return std::log(v); };
  return misfit(x, y, log, log, [](double v) { return std::exp(v); });
}
double logarithm_misfit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto same = [](double v) { return v; };
  return misfit(
      x, y, [](double v) { return std::log(v); }, same, same);
}

const std::vector<double> scales{1e-4, 3e-4, 1e-3, 3e-3, 1e-2};

}  // namespace

BOOST_AUTO_TEST_SUITE(claims_phases)

BOOST_AUTO_TEST_CASE(split_warm_up_is_inverse_in_the_scale) {
  for (const bool scaled : {false, true}) {
    Problem p = one_head(Parametrisation::split, 24);
    if (scaled) p.score_scale = ScoreScale::inverse_sqrt_embedding;
    const double s_w = p.score_factor();
    const double unit = std::sqrt(24.0 / s_w) / p.signal_power(0);
    std::vector<double> times;
    std::vector<double> excess;
    for (const double scale : scales) {
      const Times t = integrated(p, small_start(p, scale));
      // mu_0 = 2 scale, Omega_0 = scale: c = scale
      const double pole = 24.0 / (2.0 * p.signal_power(0) * s_w * scale) * std::log(2.0);
      times.push_back(t.emergence);
      // The profile is that of mu = Omega; the start leaves mu - Omega = c, which against sqrt(d / s_w), the size of
      // mu at emergence, changes the offsets (3.062, 0.621, 0.123) by factors 1 + O(c / sqrt(d / s_w) log c).
      // Damping, kappa_d = d / (L s_w) to first order, delays the pole by a multiple of kappa_d t*.
      const double damping = 24.0 / (p.context_length * s_w);
      const double correction = scale / std::sqrt(24.0 / s_w) * (10.0 - std::log(scale / std::sqrt(24.0 / s_w)));
      const double delay = 3.0 * damping * pole / unit;
      BOOST_TEST(std::abs((t.emergence - pole) / unit - emergence_offset(0.5)) < correction + delay);
      BOOST_TEST(std::abs((t.warm_up_end - pole) / unit - emergence_offset(0.05)) < correction + delay);
      BOOST_TEST(std::abs((t.emergence_end - pole) / unit - emergence_offset(0.95)) < correction + delay);
      excess.push_back(std::abs(t.width() / unit - 3.185));
      BOOST_TEST(excess.back() < correction + 5e-4);  // 3.185 is rounded
    }
    // t_0 = A / scale - 0.621 unit: the exponent of a decade misses -1 by 0.621 unit / t_0 at most.
    const PowerLaw law = fit_power_law(scales, times);
    const double bound = 0.621 * unit / times.back();
    BOOST_TEST(std::abs(law.exponent + 1.0) < bound);
    BOOST_TEST(bound < 0.02);
    // The same data know it from other exponents and from a logarithm.
    BOOST_TEST(std::abs(law.exponent + 0.5) > 20.0 * bound);
    BOOST_TEST(power_misfit(scales, times) < bound);
    BOOST_TEST(logarithm_misfit(scales, times) > 20.0 * bound);
    // And a width that grew as t_0 does would be a hundred times larger at one end than at the other.
    const Times small = integrated(p, small_start(p, scales.front()));
    const Times large = integrated(p, small_start(p, scales.back()));
    BOOST_TEST(std::abs(small.width() / large.width() - 1.0) < 0.02);
    BOOST_TEST(small.emergence / large.emergence > 90.0);
  }
}

BOOST_AUTO_TEST_CASE(corrections_vanish_with_the_scale) {
  // The exponent between neighbouring decades approaches -1 in proportion to the scale.
  const Problem p = one_head(Parametrisation::split, 24);
  std::vector<double> misses;
  for (const double scale : {1e-4, 1e-3, 1e-2}) {
    const double early = integrated(p, small_start(p, scale)).emergence;
    const double late = integrated(p, small_start(p, scale / 10.0)).emergence;
    misses.push_back(std::log10(late / early) - 1.0);
  }
  for (std::size_t k = 1; k < misses.size(); ++k) {
    BOOST_TEST(misses[k] > 0.0);
    // 10, up to terms of the next order: scale log(scale) / sqrt(d).
    BOOST_TEST(std::abs(misses[k] / misses[k - 1] - 10.0) < 0.5, misses[k] / misses[k - 1]);
  }
}

BOOST_AUTO_TEST_CASE(merged_warm_up_is_logarithmic_in_the_scale) {
  for (const int d : {10, 24}) {
    const Problem p = one_head(Parametrisation::merged, d);
    const double half = std::sqrt(static_cast<double>(d)) / (2.0 * p.signal_power(0));
    const auto logit = [](double f) {
      const double v = 1.0 - std::sqrt(1.0 - f);
      return std::log(v / (1.0 - v));
    };
    std::vector<double> times;
    for (const double scale : scales) {
      const Times t = integrated(p, small_start(p, scale));
      // mu_0 + sqrt(d) omega_0 = 3 scale                                  theory: eq:warm-up-merged-time
      const double waiting = std::log(4.0 * std::sqrt(static_cast<double>(d)) / (9.0 * scale * scale));
      // The start has v_0 = mu omega = 2 scale^2 / sqrt(d) already, which moves the level of 5 %, v = 0.025, by
      // v_0 / 0.025 relative and with it the logarithm; that mu^2 - d omega^2 = 3 scale^2 is conserved adds as much.
      // Damping by phi sqrt(d) / L and, at the end, where d omega^2 = sqrt(d), by e^sqrt(d) times that; integrator
      // 1e-6.
      const double root = std::sqrt(static_cast<double>(d));
      const double tolerance = half * (160.0 * scale * scale / root + 10.0 * root * std::exp(root) / 1e8 + 1e-6);
      BOOST_TEST(std::abs(t.emergence - half * (waiting + logit(0.5))) < tolerance);
      BOOST_TEST(std::abs(t.width() - half * (logit(0.95) - logit(0.05))) < tolerance);
      times.push_back(t.emergence);
    }
    // Slope sqrt(d) / P per e-fold of the scale; a power law misses the same data by far.
    const double slope = (times.front() - times.back()) / std::log(scales.back() / scales.front());
    BOOST_TEST(std::abs(slope / (2.0 * half) - 1.0) < 1e-3);
    BOOST_TEST(logarithm_misfit(scales, times) < 1e-3);
    BOOST_TEST(power_misfit(scales, times) > 0.02);
  }
}

namespace {

/// Mean over seeds of t_0 and t_e - t_w of the full simulation, with standard errors, and the theory's width.
struct Simulated {
  double time, time_error, width, width_error, theory_width;
};

Simulated simulated(const Problem& p, const InitialState& start, double last, double learning_rate, int batch,
                    const std::vector<std::uint64_t>& seeds) {
  SimulationOptions options;
  options.batch = batch;
  options.evaluation_contexts = 1000;
  options.precision = Precision::single_precision;
  const std::vector<double> times = both::linear_times(last, 100);
  const Trajectory theory = both::theory(p, start, times).members[0];
  const double end = theory["loss"].last()[0];
  const DynamicsResult result = both::simulation(p, start, times, learning_rate, options, seeds);
  const auto n = static_cast<double>(seeds.size());
  double t = 0.0, tt = 0.0, w = 0.0, ww = 0.0;
  // The last level at 80 % instead of 95 %: a finite context and SGD noise leave the simulation some per cent above the
  // theory's end.
  const auto phases_of = [&](const Trajectory& run) {
    const double first = run["loss"].at(0)[0];
    const Phases phases = find_phases(run.times, run["loss"].values, first + (end - first) * 0.8 / 0.95);
    BOOST_REQUIRE((phases.warm_up_end && phases.emergence_end));
    return phases;
  };
  for (const Trajectory& member : result.members) {
    const Phases phases = phases_of(member);
    const double width = *phases.emergence_end - *phases.warm_up_end;
    t += *phases.emergence_time / n;
    tt += *phases.emergence_time * *phases.emergence_time / n;
    w += width / n;
    ww += width * width / n;
  }
  const Phases exact = phases_of(theory);
  return {t, std::sqrt((tt - t * t) / (n - 1.0)), w, std::sqrt((ww - w * w) / (n - 1.0)),
          *exact.emergence_end - *exact.warm_up_end};
}

}  // namespace

// The full layer, d = 8, L = 400. What the theory's constants lack here are terms of relative order 1/d and d/L; the
// exponents need none of them.
BOOST_AUTO_TEST_CASE(simulated_warm_up, *boost::unit_test::label("slow")) {
  const std::vector<std::uint64_t> seeds{1, 2, 3, 4};
  const std::vector<double> starts{0.025, 0.05, 0.1, 0.2};
  for (const Parametrisation parametrisation : {Parametrisation::split, Parametrisation::merged}) {
    const bool split = parametrisation == Parametrisation::split;
    const Problem p = one_head(parametrisation, 8, 400);
    std::vector<double> times, errors, widths, width_errors, theory;
    const double unit = std::sqrt(8.0) / p.signal_power(0);
    for (const double scale : starts) {
      const double pole = 8.0 / (2.0 * p.signal_power(0) * scale) * std::log(2.0);
      const double last = split ? pole + 3.0 * unit : 8.0 * unit;
      const Simulated s = simulated(p, small_start(p, scale), last, 0.02, 100, seeds);
      BOOST_TEST_MESSAGE((split ? "split " : "merged ") << scale << ": t_0 " << s.time << "(" << s.time_error
                                                        << "), width " << s.width << "(" << s.width_error << ")");
      times.push_back(split ? s.time - emergence_offset(0.5) * unit : s.time);
      errors.push_back(s.time_error);
      widths.push_back(s.width);
      width_errors.push_back(s.width_error);
      theory.push_back(s.theory_width);
    }
    if (split) {
      // Systematic: the offset, 0.62 unit, is that of the closure (10 % at d = 8) and is 0.28 of the shortest t_0.
      const PowerLaw law = fit_power_law(starts, times, errors);
      BOOST_TEST_MESSAGE("exponent " << law.exponent << "(" << law.exponent_standard_error << ")");
      BOOST_TEST(std::abs(law.exponent + 1.0) < 4.0 * law.exponent_standard_error + 0.03);
      BOOST_TEST(std::abs(law.exponent + 0.5) > 4.0 * law.exponent_standard_error + 0.03);
      BOOST_TEST(power_misfit(starts, times) < 0.1);
      BOOST_TEST(logarithm_misfit(starts, times) > 0.2);
    } else {
      // sqrt(d) / P per e-fold: slope between neighbours, each with its standard error; the constant is free.
      for (std::size_t k = 1; k < times.size(); ++k) {
        const double slope = (times[k - 1] - times[k]) / std::log(2.0);
        const double error = std::hypot(errors[k], errors[k - 1]) / std::log(2.0);
        BOOST_TEST(std::abs(slope / unit - 1.0) < 4.0 * error / unit + 0.1, slope / unit << "(" << error / unit << ")");
      }
    }
    // Width: the theory's in its dependence on the scale, up to the closure's 1/d of the little that there is; and
    // nearly none there is.
    for (std::size_t k = 1; k < widths.size(); ++k) {
      const double error = std::hypot(width_errors[k], width_errors[0]) / widths[0];
      BOOST_TEST(std::abs(widths[k] / widths[0] - theory[k] / theory[0]) < 4.0 * error + 0.02);
    }
    BOOST_TEST(std::abs(widths[1] / widths[0] - 1.0) <
               4.0 * std::hypot(width_errors[1], width_errors[0]) / widths[0] + 0.1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
