#include "iclflow/analysis/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "iclflow/analysis/late_mean.hpp"
#include "iclflow/analysis/monotone_cubic.hpp"

namespace iclflow {
namespace {

// One observable of one trajectory (or of the seeds' mean) at the times that are compared, time-major.
struct Samples {
  std::vector<double> times;
  std::vector<double> values;
  std::size_t width = 1;
};

Samples samples_of(const Trajectory& member, std::string_view observable) {
  const Observable& source = member[observable];
  return {member.times, source.values, source.width()};
}

Samples samples_of(const Band& band) { return {band.times, band.mean, band.width}; }

const Trajectory& theory_run(const DynamicsResult& theory) {
  if (theory.members.empty() || theory.members.front().samples() == 0) {
    throw std::invalid_argument("dynamics '" + theory.name + "' has no samples to compare with");
  }
  return theory.members.front();
}

// Steps of a descent need not fall on the final time, so the last sample may lie a little beyond the theory's.
std::size_t covered(const std::vector<double>& times, const std::vector<double>& reference) {
  const double slack = reference.size() > 1 ? 0.5 * (reference.back() - reference[reference.size() - 2]) : 0.0;
  const auto end = std::upper_bound(times.begin(), times.end(), reference.back() + slack);
  return static_cast<std::size_t>(end - times.begin());
}

// `reference` at the first `count` of `times`.
std::vector<double> interpolate(const Samples& reference, const std::vector<double>& times, std::size_t count) {
  std::vector<double> values(count * reference.width);
  std::vector<double> column(reference.times.size());
  for (std::size_t entry = 0; entry < reference.width; ++entry) {
    for (std::size_t k = 0; k < column.size(); ++k) column[k] = reference.values.at(k * reference.width + entry);
    const MonotoneCubic curve(reference.times, column);
    for (std::size_t k = 0; k < count; ++k) values[k * reference.width + entry] = curve(times[k]);
  }
  return values;
}

struct Gap {
  double mean = 0.0;
  double maximum = 0.0;
};

// Largest entry difference per time, over `scale`; its mean and maximum over time.
Gap gap(const Samples& theory, const Samples& simulation, double scale) {
  if (theory.width != simulation.width) throw std::invalid_argument("theory and simulation differ in shape");
  const std::size_t count = covered(simulation.times, theory.times);
  if (count == 0) throw std::invalid_argument("theory and simulation have no time in common");
  const std::vector<double> reference = interpolate(theory, simulation.times, count);
  Gap result;
  for (std::size_t k = 0; k < count; ++k) {
    double largest = 0.0;
    for (std::size_t entry = k * theory.width; entry < (k + 1) * theory.width; ++entry) {
      const double difference = std::abs(simulation.values.at(entry) - reference[entry]);
      // A diverged run must not look close: NaN would pass through std::max unseen.
      largest = std::isfinite(difference) ? std::max(largest, difference) : std::numeric_limits<double>::infinity();
    }
    result.mean += largest / static_cast<double>(count);
    result.maximum = std::max(result.maximum, largest);
  }
  const auto relative = [scale](double value) {
    return value == 0.0 ? 0.0 : (scale > 0.0 ? value / scale : std::numeric_limits<double>::infinity());
  };
  return {relative(result.mean), relative(result.maximum)};
}

/// Over seeds; empty with fewer than two.
std::optional<double> standard_error(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : mean_estimate(values).standard_error;
}

}  // namespace

ObservableGap observable_gap(const DynamicsResult& theory, const DynamicsResult& simulation,
                             std::string_view observable, double scale) {
  const Samples reference = samples_of(theory_run(theory), observable);
  const Gap value = gap(reference, samples_of(seed_band(simulation, observable)), scale);
  std::vector<double> means;
  std::vector<double> maxima;
  for (const Trajectory& member : simulation.members) {
    if (member.samples() == 0) continue;
    const Gap own = gap(reference, samples_of(member, observable), scale);
    means.push_back(own.mean);
    maxima.push_back(own.maximum);
  }
  return {{value.mean, standard_error(means)}, {value.maximum, standard_error(maxima)}};
}

double largest_final(const DynamicsResult& theory, std::string_view observable) {
  double largest = 0.0;
  for (const double entry : theory_run(theory)[observable].last()) largest = std::max(largest, std::abs(entry));
  return largest;
}

std::optional<Estimate> emergence_time_gap(const DynamicsResult& theory, const DynamicsResult& simulation,
                                           double end_loss) {
  const auto emergence = [end_loss](const Samples& loss) {
    return find_phases(loss.times, loss.values, end_loss).emergence_time;
  };
  const std::optional<double> expected = emergence(samples_of(theory_run(theory), "loss"));
  const std::optional<double> seen = emergence(samples_of(seed_band(simulation, "loss")));
  if (!expected || !seen) return std::nullopt;
  std::vector<double> own;
  for (const Trajectory& member : simulation.members) {
    const std::optional<double> time = member.samples() > 0 ? emergence(samples_of(member, "loss")) : std::nullopt;
    if (time) own.push_back(std::abs(*time - *expected) / *expected);
  }
  return Estimate{std::abs(*seen - *expected) / *expected, standard_error(own)};
}

namespace {

Estimate late_excess(const DynamicsResult& theory, const DynamicsResult& simulation) {
  const Samples reference = samples_of(theory_run(theory), "loss");
  std::vector<double> own;
  for (const Trajectory& member : simulation.members) {
    const std::size_t count = covered(member.times, reference.times);
    if (count == 0) continue;
    std::vector<double> difference = interpolate(reference, member.times, count);
    for (std::size_t k = 0; k < count; ++k) difference[k] = member["loss"].values[k] - difference[k];
    own.push_back(late_mean(difference));
  }
  return mean_estimate(own);
}

}  // namespace

Band loss_difference(const DynamicsResult& theory, const DynamicsResult& simulation) {
  const Samples reference = samples_of(theory_run(theory), "loss");
  Band band = seed_band(simulation, "loss");
  const std::size_t count = covered(band.times, reference.times);
  band.times.resize(count);
  band.mean.resize(count);
  band.standard_error.resize(count);
  const std::vector<double> expected = interpolate(reference, band.times, count);
  const double initial = std::abs(reference.values.front());
  for (std::size_t k = 0; k < count; ++k) {
    band.mean[k] = (band.mean[k] - expected[k]) / initial;
    band.standard_error[k] /= initial;
  }
  return band;
}

Comparison compare(const DynamicsResult& theory, const DynamicsResult& simulation, double end_loss) {
  const double initial_loss = std::abs(theory_run(theory)["loss"].at(0)[0]);
  const ObservableGap loss = observable_gap(theory, simulation, "loss", initial_loss);
  Comparison comparison;
  comparison.loss_gap = loss.mean;
  comparison.loss_gap_max = loss.maximum;
  comparison.emergence_time_gap = emergence_time_gap(theory, simulation, end_loss);
  comparison.mu_gap = observable_gap(theory, simulation, "mu", largest_final(theory, "mu")).mean;
  comparison.omega_gap = observable_gap(theory, simulation, "omega_block", largest_final(theory, "omega_block")).mean;
  comparison.late_excess = late_excess(theory, simulation);
  return comparison;
}

}  // namespace iclflow
