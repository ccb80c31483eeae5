#include "iclflow/plots/course_figure.hpp"

#include <algorithm>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double width_cm = 8.6;  // one journal column
constexpr double main_cm = 5.2;
constexpr double strip_cm = 1.7;
constexpr double axis_cm = 1.15;
constexpr double between_cm = 0.3;
constexpr double left_points = 40.0;
constexpr double right_points = 10.0;
constexpr std::size_t longest_label = 44;

std::string line(const CourseSeries& series) {
  if (series.simulation) return simulation_line(colour(series.colour), series.dashes);
  return theory_line(series.colour == 0 ? ink : colour(series.colour), series.dashes);
}

std::string line(const CourseLevel& level) { return "lc rgb '" + colour(level.colour) + "' lw 1.1 dt 14"; }

std::string band_colour(const CourseSeries& series) {
  return series.curve.standard_error.empty() ? "" : tint(colour(series.colour), 0.25);
}

std::vector<LegendEntry> legend(const CourseFigure& figure) {
  std::vector<LegendEntry> entries;
  for (const CourseSeries& series : figure.series) {
    if (series.curve.label.empty()) continue;
    entries.push_back({shortened(series.curve.label, longest_label), line(series), "", band_colour(series)});
  }
  for (const CourseLevel& level : figure.levels) {
    if (!level.label.empty()) entries.push_back({shortened(level.label, longest_label), line(level), "", ""});
  }
  return entries;
}

Range values(const std::vector<CourseSeries>& all, const std::vector<CourseLevel>& levels) {
  std::optional<Range> range = Range{0.0, 0.0};
  for (const CourseSeries& series : all) widen(range, series.curve, false);
  for (const CourseLevel& level : levels) widen(range, Curve{"", {0.0}, {level.value}, {}}, false);
  return with_air(*range, 0.06);
}

/// Simulations first, so that the theories' thin lines stay visible.
void plot(Drawing& drawing, const std::vector<CourseSeries>& all, const std::vector<CourseLevel>& levels) {
  PlotList list(drawing.commands());
  for (const bool simulation : {true, false}) {
    for (const CourseSeries& series : all) {
      if (series.simulation != simulation) continue;
      const std::string data = drawing.block(rows(series.curve));
      if (!series.curve.standard_error.empty()) {
        list.add(data + " using 1:3:4 with filledcurves lc rgb '" + band_colour(series) + "'");
      }
      list.add(data + " using 1:2 with lines " + line(series));
    }
    if (!simulation) continue;
    for (const CourseLevel& level : levels) list.add(number(level.value) + " with lines " + line(level));
  }
}

}  // namespace

void draw(const CourseFigure& figure, const FigureFile& target) {
  std::vector<const std::vector<double>*> times;
  for (const auto* all : {&figure.series, &figure.strip}) {
    for (const CourseSeries& series : *all) {
      check(series.curve);
      times.push_back(&series.curve.times);
    }
  }
  const Head head(figure.title, legend(figure), width_cm);
  const bool strip = !figure.strip.empty();
  Drawing drawing({width_cm, head.height_cm() + main_cm + (strip ? between_cm + strip_cm : 0.0) + axis_cm});
  const double right = drawing.size().width_points() - right_points;
  const double bottom = axis_cm * Size::points_per_cm;
  const double strip_top = bottom + strip_cm * Size::points_per_cm;
  const double main_bottom = strip ? strip_top + between_cm * Size::points_per_cm : bottom;
  const Range time = time_range(times, figure.logarithmic_time);
  std::ostream& out = drawing.commands();
  out << "set multiplot\n";
  head.write(drawing);
  const Panel main{left_points, right, main_bottom, main_bottom + main_cm * Size::points_per_cm};
  place(drawing, main);
  set_time_axis(drawing, time, figure.logarithmic_time, !strip);
  set_value_axis(drawing, values(figure.series, figure.levels), 4, true);
  write_axis_name(drawing, main, "'" + figure.quantity + "'");
  plot(drawing, figure.series, figure.levels);
  if (strip) {
    out << "unset label\nunset arrow\nunset object\n";
    const Panel below{left_points, right, bottom, strip_top};
    place(drawing, below);
    set_time_axis(drawing, time, figure.logarithmic_time, true);
    set_value_axis(drawing, values(figure.strip, {}), 2, true);
    write_axis_name(drawing, below, "'" + figure.strip_quantity + "'");
    plot(drawing, figure.strip, {});
  }
  out << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const CourseFigure& figure) {
  std::string text = figure.description;
  const auto any = [&](bool simulation) {
    return std::any_of(figure.series.begin(), figure.series.end(),
                       [&](const CourseSeries& series) { return series.simulation == simulation; });
  };
  if (any(false)) text += " Thin lines: theory.";
  if (any(true)) {
    text += " Light broad lines: full-parameter simulation, mean over seeds; bands: ±2 standard errors of that mean.";
  }
  if (!figure.levels.empty()) text += " Dashed: predicted levels.";
  return text;
}

}  // namespace iclflow
