#pragma once

#include <span>

namespace iclflow {

/// y = prefactor * x^exponent, fitted by weighted least squares of log y on log x.
struct PowerLaw {
  double exponent = 0.0;
  double exponent_standard_error = 0.0;
  double prefactor = 1.0;
  double log_prefactor_standard_error = 0.0;
  double chi_square = 0.0;     ///< of log y; with unknown errors the residual sum of squares
  int degrees_of_freedom = 0;  ///< points - 2
  /// Probability of a chi-square at least this large if the law holds; 1 when no freedom is left or errors are unknown.
  double probability = 1.0;

  [[nodiscard]] double operator()(double x) const;
  /// (exponent - hypothesis) in standard errors: beyond about 3 the hypothesis is rejected.
  [[nodiscard]] double deviation(double hypothesis) const;
};

/// x, y positive and finite; standard_error: one positive standard error of y per point (small against y, so that
/// the error of log y is standard_error / y), or empty when unknown: then all log y weigh the same, their scatter
/// sets the errors, and at least 3 points are needed. Throws std::invalid_argument for anything else, for fewer than
/// 2 points and for points at a single x.
[[nodiscard]] PowerLaw fit_power_law(std::span<const double> x, std::span<const double> y,
                                     std::span<const double> standard_error = {});

}  // namespace iclflow
