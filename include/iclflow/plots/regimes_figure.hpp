#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// E |p|^2 of one context length against the variance of the scores. In the curves, `times` are variances.
struct MomentSeries {
  int context_length = 0;
  Curve exact;        ///< by quadrature
  Curve exponential;  ///< e^a / L
  Curve saturated;    ///< 1 - sqrt(2 log L / a)
  Curve sampled;      ///< points with standard errors
};

/// The regimes of attention: exponential (a straight line), crossover, saturation.
struct RegimesFigure {
  std::string title;
  std::vector<MomentSeries> series;
};
/// Throws FigureError; std::invalid_argument when a curve's arrays differ in length.
void draw(const RegimesFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const RegimesFigure& figure);

}  // namespace iclflow
