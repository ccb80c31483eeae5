#include "iclflow/plots/sequence_figures.hpp"

#include <algorithm>
#include <cstdio>

#include "line_panels.hpp"

namespace iclflow {
namespace {

using namespace plots;

const std::string loss_name = "loss ℓ";

Curve scaled(Curve curve, double by) {
  for (double& value : curve.values) value *= by;
  for (double& error : curve.standard_error) error *= by;
  return curve;
}

/// Adds the lines to the panel and to the legend.
void add(LineFigure& figure, LinePanel& panel, const Line& line) {
  figure.legend.push_back(entry(line));
  panel.lines.push_back(line);
}

/// Light to dark blue, in the order of a family's members.
std::string shade(std::size_t member, std::size_t members) {
  const double share = members > 1 ? static_cast<double>(member) / static_cast<double>(members - 1) : 1.0;
  if (share < 0.5) return tint("#0072B2", 0.35 + 1.3 * share);
  // From the palette's blue towards dark blue.
  const double dark = 2.0 * share - 1.0;
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02X%02X%02X", 0U, static_cast<unsigned>(114.0 - 70.0 * dark),
                static_cast<unsigned>(178.0 - 98.0 * dark));
  return text.data();
}

Line family_line(const Curve& curve, std::size_t member, std::size_t members) {
  const std::string hue = shade(member, members);
  return {curve, "lc rgb '" + hue + "' lw 1.6",
          "pt " + std::to_string(point_type(member)) + " ps mark lc rgb '" + hue + "'", tint(hue, 0.25)};
}

LinePanel family(const ProbePanel& probe, const std::string& x_name, const std::string& y_name) {
  LinePanel panel;
  panel.name = probe.name;
  panel.x_name = x_name;
  panel.y_name = y_name;
  panel.scale = Scale::logarithmic;
  panel.whole_x = true;
  for (std::size_t k = 0; k < probe.curves.size(); ++k) {
    panel.lines.push_back(family_line(probe.curves[k], k, probe.curves.size()));
  }
  return panel;
}

}  // namespace

void draw(const TrainingFigure& figure, const FigureFile& target) {
  const bool relative = figure.zero_loss > 0.0;
  const double by = relative ? 1.0 / figure.zero_loss : 1.0;
  LineFigure lines;
  lines.title = figure.title;
  LinePanel panel;
  panel.x_name = "step of training";
  panel.y_name = relative ? "loss ℓ / loss of prediction 0" : loss_name;
  panel.scale = Scale::logarithmic;
  for (const Curve& seed : figure.seeds) {
    panel.lines.push_back({scaled(seed, by), "lc rgb '" + tint(colour(0), 0.6) + "' lw 1.6", "", ""});
  }
  if (!figure.seeds.empty()) {
    lines.legend.push_back({figure.seeds.size() > 1 ? "trained, each seed" : figure.seeds.front().label,
                            panel.lines.front().line, "", ""});
  }
  const auto add_thin = [&](const std::vector<Curve>& curves, std::size_t series) {
    for (const Curve& curve : curves) {
      const std::string point = "pt " + std::to_string(point_type(series)) + " ps mark lc rgb '" + colour(series) + "'";
      add(lines, panel, {scaled(curve, by), theory_line(colour(series), series), point, tint(colour(series), 0.25)});
    }
  };
  add_thin(figure.compressed, 1);
  add_thin(figure.interpolated, 2);
  for (const Curve& curve : figure.published) {
    add(lines, panel, {scaled(curve, by), "", "pt 6 ps 1.4*mark lw 1.2 lc rgb '" + ink + "'", ""});
  }
  for (const LossLevel& level : figure.levels) panel.levels.push_back({level.label, level.loss * by});
  lines.panels.push_back(std::move(panel));
  plots::draw(lines, target);
}

std::string caption(const TrainingFigure& figure) {
  std::string text =
      "Loss ℓ, half the squared error of the next state, summed over its coordinates, mean over positions and test "
      "sequences, against the step of training";
  text += figure.zero_loss > 0.0 ? ", in units of the loss of the prediction 0 on the same sequences." : ".";
  if (figure.seeds.size() > 1) text += " One line per seed.";
  if (!figure.compressed.empty()) {
    text += " Compressed: every block of the products W_k^T W_q and P W_v replaced by its mean diagonal times I";
    text += figure.interpolated.empty() ? "." : "; interpolated: halfway between these products and the trained ones.";
  }
  const auto has_error = [](const std::vector<Curve>& curves) {
    return std::any_of(curves.begin(), curves.end(), [](const Curve& c) { return !c.standard_error.empty(); });
  };
  if (has_error(figure.compressed) || has_error(figure.interpolated)) text += " Bands: ±2 standard errors over seeds.";
  if (!figure.published.empty()) text += " Circles: the published curve.";
  if (!figure.levels.empty()) text += " Dashed: baselines.";
  return text;
}

void draw(const PositionsFigure& figure, const FigureFile& target) {
  LineFigure lines;
  lines.title = figure.title;
  LinePanel panel;
  panel.x_name = "context length {/:Italic t}";
  panel.y_name = "loss ℓ_{/:Italic t}";
  panel.scale = Scale::logarithmic;
  for (std::size_t k = 0; k < figure.models.size(); ++k) add(lines, panel, model_line(figure.models[k], k));
  for (std::size_t k = 0; k < figure.baselines.size(); ++k) add(lines, panel, baseline_line(figure.baselines[k], k));
  lines.panels.push_back(std::move(panel));
  plots::draw(lines, target);
}

std::string caption(const PositionsFigure& figure) {
  std::string text =
      "Loss ℓ_t at position t, half the squared error of the next state summed over its coordinates, mean over test "
      "sequences: t states have been seen. Broad light lines: trained models";
  const bool bands = std::any_of(figure.models.begin(), figure.models.end(),
                                 [](const Curve& curve) { return !curve.standard_error.empty(); });
  text += bands ? ", mean over seeds; bands: ±2 standard errors." : ".";
  if (!figure.baselines.empty()) text += " Thin dashed lines: baselines.";
  return text;
}

void draw(const ProbesFigure& figure, const FigureFile& target) {
  LineFigure lines;
  lines.title = figure.title;
  for (const ProbePanel& probe : figure.by_layer) {
    lines.panels.push_back(family(probe, "layer", "error of decoding"));
  }
  if (!figure.by_layer.empty()) {
    for (const Line& line : lines.panels.front().lines) lines.legend.push_back(entry(line));
  }
  if (!figure.past_error.curves.empty()) {
    lines.panels.push_back(family(figure.past_error, "position {/:Italic t′} of the token", "error of decoding"));
  }
  if (!figure.past_sensitivity.curves.empty()) {
    lines.panels.push_back(family(figure.past_sensitivity, "position {/:Italic t′} of the token",
                                  "|∂{/:Italic f} ^{(1)}_{/:Italic T} / ∂{/:Italic s}_{/:Italic t′}|"));
  }
  plots::draw(lines, target);
}

std::string caption(const ProbesFigure& figure) {
  std::string text =
      "Error of linear decoding from the residual stream: median over sequences of half the squared error, over that "
      "of "
      "the best constant; least squares fitted on some sequences, scored on others. Layer 0: the tokens.";
  if (!figure.past_error.curves.empty()) {
    text += " Past tokens: decoded from the first layer's output at the last position T.";
  }
  if (!figure.past_sensitivity.curves.empty()) {
    text += " Sensitivity: Frobenius norm of the derivative of that output by the state s_t′, mean over sequences.";
  }
  return text;
}

void draw(const FewShotFigure& figure, const FigureFile& target) {
  LineFigure lines;
  lines.title = figure.title;
  for (const FewShotPanel& shots : figure.panels) {
    LinePanel panel;
    panel.name = figure.panels.size() > 1 ? shots.name : "";
    panel.x_name = "pairs seen";
    panel.y_name = loss_name;
    for (std::size_t k = 0; k < shots.models.size(); ++k) panel.lines.push_back(model_line(shots.models[k], k));
    for (std::size_t k = 0; k < shots.controls.size(); ++k) {
      panel.lines.push_back(baseline_line(shots.controls[k], k));
      panel.lines.back().fitted = false;
    }
    if (shots.second_task_at >= 0.0) panel.verticals.push_back(shots.second_task_at);
    if (lines.panels.empty()) {
      for (const Line& line : panel.lines) lines.legend.push_back(entry(line));
    }
    lines.panels.push_back(std::move(panel));
  }
  plots::draw(lines, target);
}

std::string caption(const FewShotFigure& figure) {
  std::string text =
      "Loss ℓ = ½ |y − f|², summed over coordinates, of the answer to a question x after so many pairs (x, y = W* x), "
      "by a model that was trained on sequences only; bands: ±2 standard errors. Thin dashed lines: least squares on "
      "the "
      "pairs, and on these and the spurious pairs between them (whose peak may leave the panel).";
  const bool second = std::any_of(figure.panels.begin(), figure.panels.end(),
                                  [](const FewShotPanel& panel) { return panel.second_task_at >= 0.0; });
  if (second) text += " Dotted vertical line: another W* begins.";
  return text;
}

}  // namespace iclflow
