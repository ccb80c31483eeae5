#include "iclflow/plots/regimes_figure.hpp"

#include <algorithm>
#include <cmath>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double width_cm = 8.6;  // one journal column
constexpr double panel_cm = 6.2;
constexpr double axis_cm = 1.15;
constexpr double left_points = 42.0;
constexpr double right_points = 10.0;
constexpr double error_bar = 1.0;  // standard errors to either side

std::string point(std::size_t series) {
  return "pt " + std::to_string(point_type(series)) + " ps 0.55 lc rgb '" + colour(series) + "'";
}

std::vector<LegendEntry> legend(const RegimesFigure& figure) {
  std::vector<LegendEntry> entries;
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    entries.push_back({"{/:Italic L} = " + std::to_string(figure.series[s].context_length), theory_line(colour(s), 0),
                       point(s), "", true});
  }
  entries.push_back({"e^{/:Italic a} / {/:Italic L}", theory_line(grey, 1), "", "", true});
  entries.push_back({"1 − √(2 log {/:Italic L} / {/:Italic a})", theory_line(grey, 2), "", "", true});
  return entries;
}

std::string bars(Drawing& drawing, const Curve& curve) {
  std::vector<Drawing::Row> rows;
  for (std::size_t k = 0; k < curve.times.size(); ++k) {
    const double error = error_bar * curve.standard_error[k];
    rows.push_back({curve.times[k], curve.values[k], std::max(curve.values[k] - error, 0.1 * curve.values[k]),
                    curve.values[k] + error});
  }
  return drawing.block(std::move(rows));
}

void plot_series(Drawing& drawing, const RegimesFigure& figure) {
  PlotList list(drawing.commands());
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const MomentSeries& series = figure.series[s];
    const std::string pale = tint(colour(s), 0.6);
    list.add(drawing.block(rows(series.exponential)) + " using 1:2 with lines " + theory_line(pale, 1));
    list.add(drawing.block(rows(series.saturated)) + " using 1:2 with lines " + theory_line(pale, 2));
  }
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const MomentSeries& series = figure.series[s];
    list.add(drawing.block(rows(series.exact)) + " using 1:2 with lines " + theory_line(colour(s), 0));
    list.add(bars(drawing, series.sampled) + " using 1:2:3:4 with yerrorbars " + point(s));
  }
}

}  // namespace

void draw(const RegimesFigure& figure, const FigureFile& target) {
  Range variance{0.0, 1.0};
  double lowest = 0.1;
  for (const MomentSeries& series : figure.series) {
    for (const Curve* curve : {&series.exact, &series.exponential, &series.saturated, &series.sampled}) check(*curve);
    for (const double a : series.exact.times) variance.high = std::max(variance.high, a);
    for (const double value : series.exact.values) lowest = std::min(lowest, value);
  }
  const Head head(figure.title, legend(figure), width_cm);
  Drawing drawing({width_cm, head.height_cm() + panel_cm + axis_cm});
  const double bottom = axis_cm * Size::points_per_cm;
  std::ostream& out = drawing.commands();
  const Panel panel{left_points, drawing.size().width_points() - right_points, bottom,
                    bottom + panel_cm * Size::points_per_cm};
  place(drawing, panel);
  out << "set xrange [0:" << number(variance.high)
      << "]\nset format x '%g'\nset xlabel 'variance of the scores {/:Italic a} = |{/:Italic Wq}|^2' offset 0,0.5\n"
      << "set logscale y\nset format y '10^{%T}'\nset yrange [" << number(lowest / 1.5) << ":1.2]\n";
  write_axis_name(drawing, panel, "'E|{/:Italic p}|^2'");
  head.write(drawing);
  plot_series(drawing, figure);
  drawing.finish(target);
}

std::string caption(const RegimesFigure& figure) {
  std::string lengths;
  for (const MomentSeries& series : figure.series) {
    lengths += (lengths.empty() ? "" : ", ") + std::to_string(series.context_length);
  }
  return "E|p|², the weight of the noise that one head reads, against the variance a of its scores, at context lengths "
         "L = " +
         lengths +
         ". Lines: exact, by quadrature; points: softmax of sampled scores with one standard error; dashed: the "
         "exponential regime e^a/L of the large-context closure; dash-dotted: saturation on the largest scores, "
         "1 − √(2 log L / a).";
}

}  // namespace iclflow
