#include "iclflow/plots/scaling_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double width_cm = 8.6;  // one journal column
constexpr double panel_cm = 5.8;
constexpr double axis_cm = 1.15;
constexpr double left_points = 42.0;
constexpr double right_points = 10.0;
constexpr std::size_t longest_label = 58;

/// "−0.498 ± 0.012": digits as far as the standard error's second one.
std::string with_error(double value, double error) {
  const std::string sign = value < 0.0 ? "−" : "";
  if (!(error > 0.0) || !std::isfinite(error)) return fmt::format("{}{:.4g}", sign, std::abs(value));
  // exact but for rounding: an error of many zeros says nothing and does not fit
  if (error < 1e-6 * std::abs(value)) return fmt::format("{}{:.6g}", sign, std::abs(value));
  const int digits = std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 9);
  return fmt::format("{}{:.{}f} ± {:.{}f}", sign, std::abs(value), digits, error, digits);
}

std::string exponent_name(const ScalingFigure& figure) { return figure.logarithm ? "slope" : "exponent"; }

std::string label(const ScalingFigure& figure, const ScalingSeries& series) {
  if (!series.fit) return shortened(series.label, longest_label);
  const std::string law =
      ": " + exponent_name(figure) + " " + with_error(series.fit->slope, series.fit->slope_standard_error);
  return shortened(series.label, longest_label - std::min(characters(law), longest_label - 8)) + law;
}

std::string point(std::size_t k) {
  return "pt " + std::to_string(point_type(k)) + " ps mark lw 1.2 lc rgb '" + colour(k) + "'";
}

std::vector<LegendEntry> legend(const ScalingFigure& figure) {
  std::vector<LegendEntry> entries;
  for (std::size_t k = 0; k < figure.series.size(); ++k) {
    const std::string line = figure.series[k].fit ? "lc rgb '" + colour(k) + "' lw 1.1" : "";
    entries.push_back({label(figure, figure.series[k]), line, point(k), ""});
  }
  if (figure.predicted) {
    entries.push_back({"predicted " + exponent_name(figure) + " " + with_error(*figure.predicted, 0.0),
                       "lc rgb '" + ink + "' lw 1.1 dt 14", "", ""});
  }
  return entries;
}

bool shown(const ScalingFigure& figure, const ScalingSeries& series, std::size_t k) {
  return std::isfinite(series.x[k]) && series.x[k] > 0.0 && std::isfinite(series.y[k]) &&
         (figure.logarithm || series.y[k] > 0.0);
}

/// Ends of a point's error bar: one standard error, of the logarithm on a logarithmic axis.
Range bar(const ScalingFigure& figure, const ScalingSeries& series, std::size_t k) {
  const double y = series.y[k];
  if (series.standard_error.empty() || !std::isfinite(series.standard_error[k])) return {y, y};
  const double error = series.standard_error[k];
  if (figure.logarithm) return {y - error, y + error};
  return {y * std::exp(-error / y), y * std::exp(error / y)};
}

struct Axes {
  Range x;
  Range y;
};

std::optional<Axes> axes(const ScalingFigure& figure) {
  std::optional<Axes> range;
  for (const ScalingSeries& series : figure.series) {
    for (std::size_t k = 0; k < series.x.size(); ++k) {
      if (!shown(figure, series, k)) continue;
      const Range own = bar(figure, series, k);
      if (!range) range = Axes{{series.x[k], series.x[k]}, own};
      range->x = {std::min(range->x.low, series.x[k]), std::max(range->x.high, series.x[k])};
      range->y = {std::min(range->y.low, own.low), std::max(range->y.high, own.high)};
    }
  }
  if (!range) return range;
  const auto apart = [](Range r) {
    const double air = std::max(std::pow(r.high / r.low, 0.08), 1.05);
    return Range{r.low / air, r.high * air};
  };
  return Axes{apart(range->x), figure.logarithm ? with_air(range->y, 0.1) : apart(range->y)};
}

double law(const ScalingFigure& figure, const ScalingLine& line, double slope, double x) {
  const double y = line.y_mean + slope * (std::log(x) - line.x_mean);
  return figure.logarithm ? y : std::exp(y);
}

/// The law from one x to another, as points of a smooth line on any axis.
std::vector<Drawing::Row> law_rows(const ScalingFigure& figure, const ScalingLine& line, double slope, Range x) {
  constexpr int points = 60;
  std::vector<Drawing::Row> rows;
  for (int k = 0; k <= points; ++k) {
    const double at = x.low * std::pow(x.high / x.low, static_cast<double>(k) / points);
    rows.push_back({at, law(figure, line, slope, at), NAN, NAN});
  }
  return rows;
}

/// 1, 2, 5 between the powers where a logarithmic axis is short, so that it never has fewer than two numbers.
void set_logarithmic_axis(std::ostream& out, char axis, const Range& range) {
  const double decades = std::log10(range.high / range.low);
  out << "set logscale " << axis << "\nset " << axis << "range [" << number(range.low) << ":" << number(range.high)
      << "]\nset m" << axis << "tics 10\n";
  if (decades >= 3.0) {
    // a label at every n-th power, about six of them whatever the range
    const int step = static_cast<int>(std::ceil(decades / 6.0));
    out << "set " << axis << "tics (";
    const char* separator = "";
    for (int power = step * static_cast<int>(std::ceil(std::log10(range.low) / step)); power <= std::log10(range.high);
         power += step) {
      out << separator << "'10^{" << power << "}' 1e" << power;
      separator = ", ";
    }
    out << ")\n";
    return;
  }
  const bool fine = decades < 0.7;
  const bool large = range.high > 2e4 || range.low < 5e-4;
  out << "set format " << axis << (large ? " '%.0t·10^{%T}'" : " '%g'") << "\nset " << axis << "tics (";
  bool first = true;
  for (int power = static_cast<int>(std::floor(std::log10(range.low))); std::pow(10.0, power) <= range.high; ++power) {
    for (int digit = 1; digit < 10; ++digit) {
      const double at = digit * std::pow(10.0, power);
      const bool major =
          digit == 1 || digit == 2 || digit == 5 || (fine && digit < 9 && (digit % 2 == 0 || digit == 3 || digit == 7));
      if (at < range.low || at > range.high) continue;
      out << (first ? "" : ", ") << (major ? "" : "'' ") << number(at) << " " << (major ? 0 : 1);
      first = false;
    }
  }
  out << ")\n";
}

void plot(Drawing& drawing, const ScalingFigure& figure, const Axes& range) {
  PlotList list(drawing.commands());
  for (std::size_t k = 0; k < figure.series.size(); ++k) {
    const ScalingSeries& series = figure.series[k];
    if (!series.fit) continue;
    list.add(drawing.block(law_rows(figure, *series.fit, series.fit->slope, {series.fit->from, series.fit->to})) +
             " using 1:2 with lines lc rgb '" + colour(k) + "' lw 1.1");
    if (!figure.predicted) continue;
    list.add(drawing.block(law_rows(figure, *series.fit, *figure.predicted, range.x)) +
             " using 1:2 with lines lc rgb '" + tint(ink, 0.8) + "' lw 0.9 dt 14");
  }
  for (std::size_t k = 0; k < figure.series.size(); ++k) {
    const ScalingSeries& series = figure.series[k];
    std::vector<Drawing::Row> points;
    for (std::size_t j = 0; j < series.x.size(); ++j) {
      if (!shown(figure, series, j)) continue;
      const Range own = bar(figure, series, j);
      points.push_back({series.x[j], series.y[j], own.low, own.high});
    }
    const std::string data = drawing.block(points);
    if (!series.standard_error.empty()) {
      list.add(data + " using 1:3:(0):($4-$3) with vectors nohead lw 1.0 lc rgb '" + colour(k) + "'");
    }
    list.add(data + " using 1:2 with points " + point(k));
  }
}

}  // namespace

void draw(const ScalingFigure& figure, const FigureFile& target) {
  for (const ScalingSeries& series : figure.series) {
    if (series.x.size() != series.y.size() ||
        (!series.standard_error.empty() && series.standard_error.size() != series.x.size())) {
      throw std::invalid_argument("series '" + series.label + "' needs one y (and standard error, if any) per x");
    }
  }
  const Head head(figure.title, legend(figure), width_cm);
  Drawing drawing({width_cm, head.height_cm() + panel_cm + axis_cm});
  const double bottom = axis_cm * Size::points_per_cm;
  const Panel panel{left_points, drawing.size().width_points() - right_points, bottom,
                    bottom + panel_cm * Size::points_per_cm};
  std::ostream& out = drawing.commands();
  place(drawing, panel);
  out << "set xlabel " << literal(figure.x_label) << " offset 0,0.5\n";
  write_axis_name(drawing, panel, literal(figure.y_label));
  head.write(drawing);
  const std::optional<Axes> range = axes(figure);
  if (!range) {
    out << "set xrange [0:1]\nset yrange [0:1]\nset label 'there is no point to show' at graph 0.5, graph 0.5 center\n"
        << "plot NaN notitle\n";
  } else {
    set_logarithmic_axis(out, 'x', range->x);
    if (figure.logarithm) {
      set_value_axis(drawing, range->y, 4, true);
      out << "set mytics 2\n";
    } else {
      set_logarithmic_axis(out, 'y', range->y);
    }
    plot(drawing, figure, *range);
  }
  drawing.finish(target);
}

std::string caption(const ScalingFigure& figure) {
  std::string text = figure.y_label + " against " + figure.x_label + ". Bars: one standard error";
  text += figure.logarithm ? "." : " (of the logarithm).";
  const bool fitted = std::any_of(figure.series.begin(), figure.series.end(), [](const auto& s) { return s.fit; });
  if (fitted) {
    text += figure.logarithm ? " Lines: least squares fits of y = a + b ln x, weighted by the errors; slope b ± one "
                             : " Lines: least squares fits of a power law, weighted by the errors; exponent ± one ";
    text += "standard error.";
  }
  if (figure.predicted) text += " Dashed: the predicted " + exponent_name(figure) + ", through each series' mean.";
  return text;
}

}  // namespace iclflow
