#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"
#include "iclflow/plots/loss_figure.hpp"

namespace iclflow {

// Figures of models of sequences. The loss is half the squared error of the next state, summed over its coordinates. A
// Curve's `times` are whatever the horizontal axis holds: steps, context lengths, layers, pairs.
// Every draw throws FigureError, and std::invalid_argument when a curve's arrays differ in length.

/// Loss on test sequences, mean over positions, against the step of training.
struct TrainingFigure {
  std::string title;
  std::vector<Curve> seeds;         ///< one thin line each, all of one colour
  std::vector<Curve> compressed;    ///< block means in place of the trained products; mean over seeds with its error
  std::vector<Curve> interpolated;  /// halfway between trained and compressed products
  std::vector<Curve> published;     ///< drawn as points
  std::vector<LossLevel> levels;    ///< baselines, named beside the panel
  double zero_loss = 0.0;           ///< of the prediction 0; positive: the axis is in its units
};
void draw(const TrainingFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const TrainingFigure& figure);

/// Loss at position t, which is the context length; logarithmic.
struct PositionsFigure {
  std::string title;
  std::vector<Curve> models;
  std::vector<Curve> baselines;
};
void draw(const PositionsFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const PositionsFigure& figure);

/// One quantity decoded, or one sensitivity, as a family of curves.
struct ProbePanel {
  std::string name;
  std::vector<Curve> curves;  ///< e.g. one per context length, labelled "t = 10"; light to dark in their order
};
/// Errors of linear decoding, and what a past token does to the first layer's output.
struct ProbesFigure {
  std::string title;
  std::vector<ProbePanel> by_layer;  ///< decoding error against the layer
  ProbePanel past_error;             ///< against the position t' of the token that is decoded; may be empty
  ProbePanel past_sensitivity;       ///< |d output / d s_t'| against t'; may be empty
};
void draw(const ProbesFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const ProbesFigure& figure);

/// Loss of the answer to the next question against the number of pairs seen.
struct FewShotPanel {
  std::string name;              ///< e.g. "one task"
  std::vector<Curve> models;     ///< the trained model, with end-of-sequence token, with prefix
  std::vector<Curve> controls;   ///< least squares on the pairs, and on the pairs and the spurious pairs between them
  double second_task_at = -1.0;  ///< vertical line where another task begins; negative: none
};
struct FewShotFigure {
  std::string title;
  std::vector<FewShotPanel> panels;
};
void draw(const FewShotFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const FewShotFigure& figure);

}  // namespace iclflow
