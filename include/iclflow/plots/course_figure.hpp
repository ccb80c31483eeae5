#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

struct CourseSeries {
  Curve curve;              ///< its label stands in the legend unless it is empty
  bool simulation = false;  ///< broad light line with band, else thin dark line
  std::size_t colour = 0;   ///< member of the palette; theories of colour 0 are black
  std::size_t dashes = 0;   ///< solid, dashed, ...
};

/// A value that is predicted; drawn dotted.
struct CourseLevel {
  std::string label;
  double value = 0.0;
  std::size_t colour = 0;
};

/// A few numbers that a reduction speaks of, over time: theory, simulation, predicted limits.
struct CourseFigure {
  std::string title;
  std::string quantity;     ///< of the axis, in gnuplot's marks
  std::string description;  ///< the caption's first sentences
  std::vector<CourseSeries> series;
  std::vector<CourseLevel> levels;
  std::string strip_quantity{};       ///< of the strip below
  std::vector<CourseSeries> strip{};  ///< empty: no strip
  bool logarithmic_time = false;
};
/// Throws FigureError; std::invalid_argument when a curve's arrays differ in length.
void draw(const CourseFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const CourseFigure& figure);

}  // namespace iclflow
