#include "iclflow/plots/leakage_figure.hpp"

#include <algorithm>
#include <cmath>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double width_cm = 8.6;  // one journal column
constexpr double panel_cm = 5.6;
constexpr double axis_cm = 1.15;
constexpr double left_points = 42.0;
constexpr double right_points = 10.0;
constexpr std::size_t longest_label = 44;
// A decomposable start has leakage at rounding level; one sample of 1e-17 must not set the axis.
constexpr double deepest = 1e-5;

const std::array<std::string, 4> names{
    "key-query, off-diagonal {/:Italic XX}", "cross, key from response {/:Italic YX}",
    "output-value, off-diagonal {/:Italic U_Y}", "value from covariates {/:Italic U_X}"};

std::string norm_line(std::size_t norm, std::size_t series) { return theory_line(colour(norm), series); }

std::string norm_point(std::size_t norm) {
  return "pt " + std::to_string(point_type(norm)) + " ps mark lc rgb '" + colour(norm) + "'";
}

std::string diagonal_line(std::size_t k) { return theory_line(grey, 2 + k); }

std::vector<LegendEntry> legend(const LeakageFigure& figure) {
  std::vector<LegendEntry> entries;
  for (std::size_t norm = 0; norm < names.size(); ++norm) {
    entries.push_back({names[norm], norm_line(norm, 0), norm_point(norm), "", true});
  }
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const bool band = !figure.series[s].norms[0].standard_error.empty();
    entries.push_back(
        {shortened(figure.series[s].label, longest_label), theory_line(ink, s), "", band ? tint(grey, 0.3) : ""});
  }
  for (std::size_t k = 0; k < figure.diagonal.size(); ++k) {
    entries.push_back({shortened(figure.diagonal[k].label, longest_label), diagonal_line(k), "", ""});
  }
  return entries;
}

std::optional<Range> value_range(const LeakageFigure& figure) {
  std::optional<Range> range;
  for (const LeakageSeries& series : figure.series) {
    for (const Curve& curve : series.norms) widen(range, curve, true);
  }
  if (!range) return range;
  range->low = std::max(range->low, deepest * range->high);
  for (const Curve& curve : figure.diagonal) {
    std::optional<Range> own;
    widen(own, curve, true);
    if (own) range->high = std::max(range->high, own->high);
  }
  return Range{range->low / 1.5, range->high * 1.5};
}

void plot_norms(Drawing& drawing, const LeakageFigure& figure, const Range& time, double floor) {
  PlotList list(drawing.commands());
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    for (std::size_t norm = 0; norm < names.size(); ++norm) {
      const Curve& curve = figure.series[s].norms[norm];
      const std::string data = drawing.block(rows(curve, floor));
      if (!curve.standard_error.empty()) {
        list.add(data + " using 1:3:4 with filledcurves lc rgb '" + tint(colour(norm), 0.3) + "'");
      }
      lines.push_back(data + " using 1:2 with lines " + norm_line(norm, s));
      lines.push_back(drawing.block(marks(curve, time, figure.logarithmic_time, norm, names.size())) +
                      " using 1:2 with points " + norm_point(norm));
    }
  }
  for (const std::string& line : lines) list.add(line);
  for (std::size_t k = 0; k < figure.diagonal.size(); ++k) {
    list.add(drawing.block(rows(figure.diagonal[k], floor)) + " using 1:2 with lines " + diagonal_line(k));
  }
}

}  // namespace

void draw(const LeakageFigure& figure, const FigureFile& target) {
  std::vector<const std::vector<double>*> times;
  for (const LeakageSeries& series : figure.series) {
    for (const Curve& curve : series.norms) {
      check(curve);
      times.push_back(&curve.times);
    }
  }
  for (const Curve& curve : figure.diagonal) check(curve);
  const Head head(figure.title, legend(figure), width_cm);
  Drawing drawing({width_cm, head.height_cm() + panel_cm + axis_cm});
  const double bottom = axis_cm * Size::points_per_cm;
  const Range time = time_range(times, figure.logarithmic_time);
  const std::optional<Range> values = value_range(figure);
  std::ostream& out = drawing.commands();
  const Panel panel{left_points, drawing.size().width_points() - right_points, bottom,
                    bottom + panel_cm * Size::points_per_cm};
  place(drawing, panel);
  set_time_axis(drawing, time, figure.logarithmic_time, true);
  write_axis_name(drawing, panel, "'leakage (root sum of squares)'");
  head.write(drawing);
  if (values) {
    out << "set logscale y\nset format y '10^{%T}'\nset yrange [" << number(values->low) << ":" << number(values->high)
        << "]\n";
    plot_norms(drawing, figure, time, values->low);
  } else {
    out << "set yrange [0:1]\nset label 'all four norms are exactly zero' at graph 0.5, graph 0.5 center\n"
        << "plot NaN notitle\n";
  }
  drawing.finish(target);
}

std::string caption(const LeakageFigure& figure) {
  std::string text =
      "Weights that the reduction says are zero, over time t of the flow dθ/dt = −∇ℓ: root sum of squares over heads "
      "and entries in the Φ, Ψ basis of the off-diagonal key-query block (XX, score scale included), the scores that "
      "read keys from responses (YX), the off-diagonal output-value block (U_Y) and the values read from covariates "
      "(U_X). Mean over seeds; bands: ±2 standard errors of the logarithm of that mean.";
  if (!figure.diagonal.empty()) text += " Grey: norms of the diagonals, for scale.";
  return text;
}

}  // namespace iclflow
