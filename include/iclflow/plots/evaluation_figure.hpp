#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// Loss of one estimator, or of one dynamics' final weights, over context lengths. NAN: there is no value.
struct EvaluationCurve {
  std::string label;
  bool weights = false;  ///< of a dynamics: drawn as a broad light line, else thin
  std::vector<double> lengths{};
  std::vector<double> losses{};
  std::vector<double> standard_errors{};
  std::vector<double> predictions{};
};

/// One law of contexts.
struct EvaluationPanel {
  std::string law;
  double zero_loss = 1.0;  ///< of the prediction yhat = 0; losses are drawn in this unit
  std::vector<EvaluationCurve> curves{};
};

/// Population loss ell (half the squared error, noise-free target, summed over tasks) over context length, in units of
/// the loss of the prediction 0; one panel per law, all with the same axes and the same curves in the same order.
struct EvaluationFigure {
  std::string title;
  std::vector<EvaluationPanel> panels;
  double training_length = 0.0;  ///< vertical line
  bool logarithmic_length = true;
  bool logarithmic_loss = true;
};
/// Throws FigureError; std::invalid_argument when a curve's arrays differ in length.
void draw(const EvaluationFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const EvaluationFigure& figure);

}  // namespace iclflow
