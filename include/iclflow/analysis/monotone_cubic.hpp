#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace iclflow {

/// Piecewise cubic through (x_k, y_k) that rises and falls only where the data do, so that a crossing read off it
/// lies between the samples that bracket it. Slopes are weighted harmonic means of the neighbouring secants,
/// one-sided three-point slopes at the ends.
/// Sources: Fritsch and Carlson 1980, doi:10.1137/0717021; Fritsch and Butland 1984, doi:10.1137/0905021.
class MonotoneCubic {
 public:
  /// x strictly increasing and finite, one y per x, at least one point; throws std::invalid_argument otherwise.
  MonotoneCubic(std::span<const double> x, std::span<const double> y);

  /// Value at `position`; outside the data the nearest end's value.
  [[nodiscard]] double operator()(double position) const;
  /// The one root of curve = level in [x_{k-1}, x_k]; the two ends must lie on different sides of (or at) the level.
  [[nodiscard]] double crossing(std::size_t k, double level) const;

 private:
  [[nodiscard]] double within(std::size_t k, double fraction) const;

  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<double> slope_;
};

}  // namespace iclflow
