#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/analysis/phases.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// Mean and standard error of one observable over members, per time; only times that all members reached. Members that
/// have not begun (no sample) do not count.
struct Band {
  std::vector<double> times;
  std::vector<double> mean;            ///< time-major, observable.width() entries a time
  std::vector<double> standard_error;  ///< same shape; zero with one member
  std::size_t width = 1;
};
[[nodiscard]] Band seed_band(const DynamicsResult& result, std::string_view observable);

/// (loss_sim - loss_theory) / loss_theory(0) at the simulation's times, seeds' mean and standard error.
[[nodiscard]] Band loss_difference(const DynamicsResult& theory, const DynamicsResult& simulation);

/// Mean and maximum over the simulation's times of the largest entry's |sim - theory| / scale of one observable, as in
/// Comparison.
struct ObservableGap {
  Estimate mean;
  Estimate maximum;
};
[[nodiscard]] ObservableGap observable_gap(const DynamicsResult& theory, const DynamicsResult& simulation,
                                           std::string_view observable, double scale);
/// Largest |entry| of an observable at the theory's end: the scale of a relative gap.
[[nodiscard]] double largest_final(const DynamicsResult& theory, std::string_view observable);
/// Relative difference of the times at which half of loss(0) - end_loss is gone; empty where not reached.
[[nodiscard]] std::optional<Estimate> emergence_time_gap(const DynamicsResult& theory, const DynamicsResult& simulation,
                                                         double end_loss);

/// Theory against simulation on one clock. Gaps as in summary.json:
/// loss_gap = mean over the simulation's times of |loss_sim - loss_theory| / loss_theory(0), loss_gap_max its maximum;
/// emergence_time_gap relative; mu_gap, omega_gap = mean over time of the largest entry difference over the theory's
/// largest final entry. Value: gap of the seeds' mean curve; standard error: over the seeds' own gaps.
struct Comparison {
  Estimate loss_gap;
  Estimate loss_gap_max;
  std::optional<Estimate> emergence_time_gap;
  Estimate mu_gap;
  Estimate omega_gap;
  Estimate
      late_excess;  ///< loss_sim - loss_theory, mean over the last half of the simulation's samples; mean over seeds
};
/// theory: one member with observables loss, mu, omega_block; simulation: the same per seed. The theory is
/// interpolated (monotone cubic) to the simulation's times when they differ; where it ended more than half a sample
/// before the simulation the rest is left out. end_loss: theory's at the final time. A mu or omega gap is infinite when
/// the theory's final entries are all zero and the simulation's are not.
/// Throws std::invalid_argument when there is nothing to compare, std::out_of_range for a missing observable.
[[nodiscard]] Comparison compare(const DynamicsResult& theory, const DynamicsResult& simulation, double end_loss);

}  // namespace iclflow
