#pragma once

#include <string>
#include <vector>

#include "iclflow/analysis/phases.hpp"
#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// A loss level to be reached, e.g. {"dedicated limit", 2.137}; drawn dashed.
struct LossLevel {
  std::string label;
  double loss = 0.0;
};

/// Population loss ell (half the squared error, noise-free target, summed over tasks) over time.
struct LossFigure {
  std::string title;
  std::vector<Curve> theory;              ///< drawn as thin dark lines
  std::vector<Curve> simulation;          ///< seeds' means, drawn as broad light lines with their bands
  Phases theory_phases;                   ///< of the first theory; vertical lines
  std::vector<Phases> simulation_phases;  ///< one per simulation (or empty); open circles on its curve
  std::vector<LossLevel> levels;          ///< predicted limits
  std::vector<Curve> difference;          ///< (simulation - theory) / loss_theory(0); a strip below, when not empty
  bool logarithmic_time = false;
};
/// Throws FigureError; std::invalid_argument when a curve's arrays differ in length.
void draw(const LossFigure& figure, const FigureFile& target);
/// What the figure shows, with its normalisation, in plain text.
[[nodiscard]] std::string caption(const LossFigure& figure);

}  // namespace iclflow
