#include "iclflow/plots/evaluation_figure.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double column_cm = 8.6;  // one journal column
constexpr double page_cm = 17.8;   // two
constexpr std::size_t most_columns = 3;
constexpr double single_panel_cm = 6.2;
constexpr double panel_cm = 4.4;
constexpr double axis_cm = 1.15;
constexpr double between_cm = 0.5;  // rows; the law's name stands there
constexpr double left_points = 42.0;
constexpr double right_points = 10.0;
constexpr double gutter_points = 12.0;
constexpr std::size_t longest_label = 32;
constexpr std::size_t most_marked = 24;  // lengths that all carry a mark and an error bar
constexpr double deepest = 1e-6;         // of the highest loss, on a logarithmic axis
constexpr double highest = 40.0;         // losses far beyond that of the prediction 0 leave the panel
constexpr double highest_linear = 1.6;
constexpr double late = 0.9;  // share of the length axis beyond which text stands left of the line

std::string line_of(const EvaluationCurve& curve, std::size_t k) {
  return curve.weights ? simulation_line(colour(k), k) : theory_line(colour(k), k);
}

std::string point_of(std::size_t k) {
  return "pt " + std::to_string(point_type(k)) + " ps mark lc rgb '" + colour(k) + "'";
}

const std::string prediction_line = "lc rgb '" + ink + "' lw 1.0 dt 12";
const std::string zero_line = "lc rgb '" + grey + "' lw 0.9 dt 14";

bool predicted(const EvaluationFigure& figure) {
  for (const EvaluationPanel& panel : figure.panels) {
    for (const EvaluationCurve& curve : panel.curves) {
      if (std::any_of(curve.predictions.begin(), curve.predictions.end(), [](double x) { return std::isfinite(x); })) {
        return true;
      }
    }
  }
  return false;
}

std::vector<LegendEntry> legend(const EvaluationFigure& figure) {
  std::vector<LegendEntry> entries;
  const std::vector<EvaluationCurve>& curves = figure.panels.front().curves;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    entries.push_back({shortened(curves[k].label, longest_label), line_of(curves[k], k), point_of(k), ""});
  }
  if (predicted(figure)) entries.push_back({"prediction", prediction_line, "", ""});
  entries.push_back({"{/:Italic ŷ} = 0", zero_line, "", "", true});
  return entries;
}

struct Axes {
  Range length;
  Range loss;
};

Axes axes(const EvaluationFigure& figure) {
  std::optional<Range> length;
  std::optional<Range> loss;
  const auto widen_to = [](std::optional<Range>& range, double value) {
    range = range ? Range{std::min(range->low, value), std::max(range->high, value)} : Range{value, value};
  };
  for (const EvaluationPanel& panel : figure.panels) {
    for (const EvaluationCurve& curve : panel.curves) {
      for (std::size_t k = 0; k < curve.lengths.size(); ++k) {
        widen_to(length, curve.lengths[k]);
        const double value = curve.losses[k] / panel.zero_loss;
        if (value > 0.0 && std::isfinite(value)) widen_to(loss, value);
      }
    }
  }
  if (!length) length = Range{1.0, 2.0};
  widen_to(length, figure.training_length);
  if (!(length->high > length->low)) length = Range{0.5 * length->low, 2.0 * length->high};
  widen_to(loss, 1.0);
  *length = figure.logarithmic_length ? Range{length->low / 1.08, length->high * 1.08}
                                      : Range{0.0, length->high + 0.01 * (length->high - length->low)};
  if (!figure.logarithmic_loss) return {*length, {0.0, std::min(1.05 * loss->high, highest_linear)}};
  loss->high = std::min(loss->high, highest);
  loss->low = std::max(loss->low, deepest * loss->high);
  return {*length, {loss->low / 1.4, loss->high * 1.4}};
}

void set_axes(Drawing& drawing, const EvaluationFigure& figure, const Axes& axes, bool left) {
  std::ostream& out = drawing.commands();
  out << "set xrange [" << number(axes.length.low) << ":" << number(axes.length.high) << "]\n";
  if (figure.logarithmic_length) {
    out << "set logscale x\nset xtics " << logarithmic_tics(axes.length, true) << "\n";
  }
  if (figure.logarithmic_loss) {
    out << "set logscale y\nset yrange [" << number(axes.loss.low) << ":" << number(axes.loss.high) << "]\nset ytics "
        << logarithmic_tics(axes.loss, left) << "\n";
  } else {
    set_value_axis(drawing, axes.loss, 4, left);
  }
  out << "set xlabel 'context length {/:Italic L}' offset 0,0.5\n";
}

/// Rows (length, loss, ends of the error bar) in units of the panel.
std::vector<Drawing::Row> points(const EvaluationCurve& curve, const EvaluationPanel& panel, const Range& shown,
                                 bool logarithmic) {
  std::vector<Drawing::Row> rows;
  for (std::size_t k = 0; k < curve.lengths.size(); ++k) {
    const double value = curve.losses[k] / panel.zero_loss;
    const double half = band_standard_errors * curve.standard_errors[k] / panel.zero_loss;
    const bool drawn = std::isfinite(value) && (!logarithmic || value >= shown.low);
    rows.push_back({curve.lengths[k], drawn ? value : NAN, drawn ? std::max(value - half, shown.low) : NAN,
                    drawn ? value + half : NAN});
  }
  return rows;
}

std::vector<Drawing::Row> prediction_points(const EvaluationCurve& curve, const EvaluationPanel& panel, double floor) {
  std::vector<Drawing::Row> rows;
  for (std::size_t k = 0; k < curve.lengths.size(); ++k) {
    const double value = curve.predictions[k] / panel.zero_loss;
    rows.push_back({curve.lengths[k], value >= floor ? value : NAN, NAN, NAN});
  }
  return rows;
}

/// A few rows, at other places for each curve.
std::vector<Drawing::Row> some(const std::vector<Drawing::Row>& rows, std::size_t member) {
  constexpr std::size_t wanted = 8;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / wanted);
  std::vector<Drawing::Row> few;
  for (std::size_t k = (member * 3) % stride; k < rows.size(); k += stride) few.push_back(rows[k]);
  return few;
}

void plot_panel(Drawing& drawing, const EvaluationFigure& figure, const EvaluationPanel& panel, const Axes& axes) {
  PlotList list(drawing.commands());
  list.add("1 with lines " + zero_line);
  std::vector<std::string> above;
  for (std::size_t k = 0; k < panel.curves.size(); ++k) {
    const EvaluationCurve& curve = panel.curves[k];
    const auto all = points(curve, panel, axes.loss, figure.logarithmic_loss);
    const std::string data = drawing.block(all);
    const bool every = all.size() <= most_marked;
    if (!every) list.add(data + " using 1:3:4 with filledcurves lc rgb '" + tint(colour(k), 0.25) + "'");
    list.add(data + " using 1:2 with lines " + line_of(curve, k));
    if (every) above.push_back(data + " using 1:3:(0):($4-$3) with vectors nohead lw 0.8 lc rgb '" + colour(k) + "'");
    above.push_back((every ? data : drawing.block(some(all, k))) + " using 1:2 with points " + point_of(k));
    above.push_back(drawing.block(prediction_points(curve, panel, axes.loss.low)) + " using 1:2 with lines " +
                    prediction_line);
  }
  for (const std::string& item : above) list.add(item);
}

void write_marks(Drawing& drawing, const EvaluationFigure& figure, const EvaluationPanel& panel, const Range& length) {
  std::ostream& out = drawing.commands();
  const double share = figure.logarithmic_length
                           ? std::log(figure.training_length / length.low) / std::log(length.high / length.low)
                           : (figure.training_length - length.low) / (length.high - length.low);
  const std::string at = number(figure.training_length);
  out << "set arrow from first " << at << ", graph 0 to first " << at << ", graph 1 nohead back lc rgb '"
      << tint(ink, 0.45) << "' lw 0.8 dt 12\n"
      << "set label 'trained' at first " << at << ", graph 1.045 " << (share < late ? "center" : "right")
      << " textcolor rgb '" << tint(ink, 0.7) << "' font ',6'\n";
  if (figure.panels.size() > 1) {
    out << "set label " << literal(shortened(panel.law, longest_label)) << " at graph 0, graph 1.06 left\n";
  }
}

void check(const EvaluationFigure& figure) {
  if (figure.panels.empty()) throw std::invalid_argument("an evaluation figure needs a panel");
  for (const EvaluationPanel& panel : figure.panels) {
    for (const EvaluationCurve& curve : panel.curves) {
      const std::size_t n = curve.lengths.size();
      if (curve.losses.size() != n || curve.standard_errors.size() != n || curve.predictions.size() != n) {
        throw std::invalid_argument("curve '" + curve.label + "' needs one loss, error and prediction per length");
      }
    }
  }
}

}  // namespace

void draw(const EvaluationFigure& figure, const FigureFile& target) {
  check(figure);
  const std::size_t count = figure.panels.size();
  const std::size_t columns = std::min(count, most_columns);
  const std::size_t rows = (count + columns - 1) / columns;
  const double width_cm = count == 1 ? column_cm : page_cm;
  const double height_cm = count == 1 ? single_panel_cm : panel_cm;
  const Head head(figure.title, legend(figure), width_cm);
  Drawing drawing({width_cm, head.height_cm() + static_cast<double>(rows) * height_cm +
                                 static_cast<double>(rows - 1) * (between_cm + axis_cm) + axis_cm});
  const Axes shown = axes(figure);
  const double cm = Size::points_per_cm;
  const double width =
      (drawing.size().width_points() - left_points - right_points - gutter_points * static_cast<double>(columns - 1)) /
      static_cast<double>(columns);
  drawing.commands() << "set multiplot\n";
  head.write(drawing);
  for (std::size_t k = 0; k < count; ++k) {
    const auto column = static_cast<double>(k % columns);
    const auto below = static_cast<double>(rows - 1 - k / columns);
    const double left = left_points + column * (width + gutter_points);
    const double bottom = (axis_cm + below * (height_cm + between_cm + axis_cm)) * cm;
    const Panel panel{left, left + width, bottom, bottom + height_cm * cm};
    if (k > 0) drawing.commands() << "unset label\nunset arrow\nunset object\n";
    place(drawing, panel);
    set_axes(drawing, figure, shown, k % columns == 0);
    if (k % columns == 0) write_axis_name(drawing, panel, "'loss ℓ / loss of {/:Italic ŷ} = 0'");
    write_marks(drawing, figure, figure.panels[k], shown.length);
    plot_panel(drawing, figure, figure.panels[k], shown);
  }
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const EvaluationFigure& figure) {
  std::string text =
      "Population loss ℓ = ½ E|ŷ − y|², noise-free target, summed over tasks, on fresh contexts of L examples, in "
      "units "
      "of the loss of the prediction ŷ = 0, over L. Broad light lines: final weights of the dynamics; thin lines: "
      "classical estimators, which know the training law; bars or bands: ±2 standard errors. Dotted vertical line: the "
      "context length of the training.";
  if (predicted(figure)) text += " Dotted black lines: closed forms, and the closure for weights.";
  if (figure.panels.size() > 1) text += " One panel per law of the contexts; all estimators see the same covariates.";
  text += " A gap in a line: the loss has no mean there.";
  return text;
}

}  // namespace iclflow
