#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// The heads' shares at one time of one dynamics.
struct ShareMap {
  double time = 0.0;
  std::vector<double> share;  ///< heads x tasks, row-major (Allocation::share); empty: this time was not reached
};

/// All chosen times of one dynamics.
struct ShareRow {
  std::string label;
  std::vector<ShareMap> maps;  ///< one per moment
};

/// Heads x tasks heat maps of each head's share of each task's output, mu omega over the sum of all heads; one row of
/// maps per dynamics, one column per moment.
struct AllocationFigure {
  std::string title;
  int heads = 0;
  int tasks = 0;
  std::vector<std::string> moments;  ///< e.g. {"start", "warm-up end", "emergence", "end"}
  std::vector<ShareRow> rows;
};
/// Throws FigureError; std::invalid_argument when an array's length does not fit.
void draw(const AllocationFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const AllocationFigure& figure);

}  // namespace iclflow
