#pragma once

#include <span>

namespace iclflow {

/// y = intercept + slope * x, fitted by weighted least squares.
struct StraightLine {
  double slope = 0.0;
  double slope_standard_error = 0.0;
  double intercept = 0.0;
  double intercept_standard_error = 0.0;
  double x_mean = 0.0;  ///< weighted mean of the points, through which the line goes
  double y_mean = 0.0;
  double chi_square = 0.0;     ///< with unknown errors the residual sum of squares
  int degrees_of_freedom = 0;  ///< points - 2
  /// Probability of a chi-square at least this large if the law holds; 1 when no freedom is left or errors are unknown.
  double probability = 1.0;
};

/// standard_error: one positive standard error of y per point, or empty when unknown: then all y weigh the same, their
/// scatter sets the errors, and at least 3 points are needed. Throws std::invalid_argument for anything else, for fewer
/// than 2 points, for points at a single x and for numbers that are not finite.
[[nodiscard]] StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y,
                                             std::span<const double> standard_error = {});

/// y = intercept + slope * ln x; x positive, otherwise as fit_straight_line.
[[nodiscard]] StraightLine fit_logarithm(std::span<const double> x, std::span<const double> y,
                                         std::span<const double> standard_error = {});

}  // namespace iclflow
