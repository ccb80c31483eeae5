#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/loss_figure.hpp"
#include "style.hpp"

namespace iclflow::plots {

/// One curve of a panel with gnuplot's properties; empty: not drawn.
struct Line {
  Curve curve;
  std::string line;
  std::string point;
  std::string band;    ///< fill colour
  bool fitted = true;  ///< the value axis follows it; else it may leave the panel
};

enum class Scale : std::uint8_t {
  linear,      ///< from 0
  logarithmic  ///< where the data span a factor of 3 or more
};

/// One panel with its own axes. Level lines are named to its right.
struct LinePanel {
  std::string name;    ///< above the panel; shown literally
  std::string x_name;  ///< gnuplot's enhanced text
  std::string y_name;
  bool whole_x = false;  ///< x is a small whole number: a tic at each
  Scale scale = Scale::linear;
  std::vector<Line> lines;
  std::vector<LossLevel> levels;
  std::vector<double> verticals;
};

struct LineFigure {
  std::string title;
  std::vector<LegendEntry> legend;
  std::vector<LinePanel> panels;  ///< one: a journal column; more: two to a row
};
void draw(const LineFigure& figure, const FigureFile& target);

/// Line and band of a model's curve (broad, light) and of a baseline's (thin, dashed), by series.
[[nodiscard]] Line model_line(const Curve& curve, std::size_t series);
[[nodiscard]] Line baseline_line(const Curve& curve, std::size_t series);
[[nodiscard]] LegendEntry entry(const Line& line);

}  // namespace iclflow::plots
