#pragma once

#include <array>
#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// The norms of what the reduction says is zero, of one simulation: seeds' means.
struct LeakageSeries {
  std::string label;
  std::array<Curve, 4> norms;  ///< key_query, cross, output_value, value_x (Projection::Leakage); labels are not used
};

/// Root sums of squares over heads of the entries outside the decomposable manifold, over time, log axis.
struct LeakageFigure {
  std::string title;
  std::vector<LeakageSeries> series;
  std::vector<Curve> diagonal;  ///< for scale, e.g. {"|omega|", ...} and {"|mu|", ...}; thin grey lines; may be empty
  bool logarithmic_time = false;
};
/// Throws FigureError; std::invalid_argument when a curve's arrays differ in length.
void draw(const LeakageFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const LeakageFigure& figure);

}  // namespace iclflow
