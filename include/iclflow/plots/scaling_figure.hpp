#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// The law that was fitted to one series.
struct ScalingLine {
  double slope = 0.0;  ///< exponent of y = c x^slope, or of y = a + slope ln x
  double slope_standard_error = 0.0;
  double x_mean = 0.0;  ///< weighted mean of ln x of the points, through which the line goes
  double y_mean = 0.0;  ///< and of ln y (of y, for the logarithm)
  double from = 0.0;    ///< range of x that was fitted
  double to = 0.0;
};

/// Points of one quantity.
struct ScalingSeries {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> standard_error;  ///< one per point, or empty
  std::optional<ScalingLine> fit;      ///< empty when there was none to be had
};

/// A quantity against what it scales with: points, the fitted law, the predicted one.
struct ScalingFigure {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool logarithm = false;           ///< y = a + b ln x on a linear y axis, else y = c x^b on a logarithmic one
  std::optional<double> predicted;  ///< exponent (or b), drawn dashed through each series' mean
  std::vector<ScalingSeries> series;
};
/// Throws FigureError; std::invalid_argument when a series' arrays differ in length.
void draw(const ScalingFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const ScalingFigure& figure);

}  // namespace iclflow
