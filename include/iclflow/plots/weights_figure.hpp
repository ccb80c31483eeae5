#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// A group of neighbouring coordinates of the residual stream, outlined and named.
struct WeightBlock {
  std::string symbol;  ///< gnuplot's enhanced text, the program's own and never a file's; may be empty
  int size = 0;
};

/// The two products of one head, or their sums over heads.
struct WeightMap {
  std::string label;
  std::vector<double> key_query;     ///< W_k^T W_q, row = key coordinate, column = query coordinate, row-major
  std::vector<double> output_value;  ///< P W_v, row = output coordinate, column = input coordinate
};
struct WeightLayer {
  std::string name;  ///< shown when there are several layers
  std::vector<WeightBlock> key_query_blocks;
  std::vector<WeightBlock> output_value_blocks;
  std::vector<WeightMap> maps;
};

/// Heat maps of attention weights: per layer a row of W_k^T W_q and a row of P W_v, a column for each map. White is 0;
/// the colours of a row share one scale, symmetric about 0.
struct WeightsFigure {
  std::string title;
  std::vector<WeightLayer> layers;
};
/// Throws FigureError; std::invalid_argument when an array is not square over its blocks.
void draw(const WeightsFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const WeightsFigure& figure);

}  // namespace iclflow
