#include "line_panels.hpp"

#include <algorithm>
#include <cmath>

namespace iclflow::plots {
namespace {

constexpr double column_cm = 8.6;  // one journal column
constexpr double page_cm = 17.8;   // two
constexpr double single_panel_cm = 5.6;
constexpr double panel_cm = 4.6;
constexpr double axis_cm = 1.15;
constexpr double between_cm = 0.7;  // rows; a panel's name stands there
constexpr double left_points = 42.0;
constexpr double right_points = 10.0;
constexpr std::size_t longest_label = 40;
constexpr double ratio_for_logarithm = 3.0;
constexpr double deepest = 1e-5;  // of the highest value, on a logarithmic axis
constexpr std::size_t most_marked = 24;
constexpr double level_gap = 7.6;         // between the names of levels, points
constexpr double leader = 9.0;            // from the panel's edge to such a name
constexpr double level_character = 3.45;  // width at 6 points

struct Axes {
  Range x;
  Range y;
  bool logarithmic = false;
};

Axes axes(const LinePanel& panel) {
  std::vector<const std::vector<double>*> xs;
  std::optional<Range> all;
  std::optional<Range> positive;
  const auto see = [&](const Curve& curve) {
    widen(all, curve, false);
    widen(positive, curve, true);
  };
  for (const Line& line : panel.lines) {
    xs.push_back(&line.curve.times);
    if (line.fitted) see(line.curve);
  }
  for (const LossLevel& level : panel.levels) see({"", {0.0}, {level.loss}, {}});
  Axes result;
  result.x = time_range(xs, false);
  if (panel.whole_x) result.x = with_air(result.x, 0.04);
  result.logarithmic =
      panel.scale == Scale::logarithmic && positive && positive->high > ratio_for_logarithm * positive->low;
  if (result.logarithmic) {
    result.y = {std::max(positive->low, deepest * positive->high) / 1.25, positive->high * 1.25};
  } else {
    result.y = all ? Range{std::min(0.0, all->low), with_air(*all, 0.06).high} : Range{0.0, 1.0};
  }
  return result;
}

void set_axes(Drawing& drawing, const LinePanel& panel, const Axes& axes) {
  std::ostream& out = drawing.commands();
  // Numbers of four digits would touch at gnuplot's own choice.
  const std::string wide = axes.x.high >= 1000.0 ? number(tic_interval(axes.x, 3)) : "autofreq";
  out << "set xrange [" << number(axes.x.low) << ":" << number(axes.x.high) << "]\nset xlabel '" << panel.x_name
      << "' offset 0,0.5\nset format x '%g'\nset xtics " << (panel.whole_x && axes.x.high < 13.0 ? "1" : wide) << "\n";
  if (axes.logarithmic) {
    out << "set logscale y\nset yrange [" << number(axes.y.low) << ":" << number(axes.y.high) << "]\nset ytics "
        << logarithmic_tics(axes.y, true) << "\n";
  } else {
    set_value_axis(drawing, axes.y, 4, true);
  }
}

/// Places of the levels' names in points above the panel's bottom: near their levels, `level_gap` apart, inside.
std::vector<double> spread_names(std::vector<double> wanted, double height) {
  std::vector<std::size_t> order(wanted.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  std::vector<double> sorted;
  for (const std::size_t k : order) sorted.push_back(wanted[k]);
  // Rows of names that touch are moved as one, to where their mean wish is kept.
  std::vector<Range> groups;  // low = lowest name's place, high = number of names
  for (const double place : sorted) {
    groups.push_back({place, 1.0});
    while (groups.size() > 1 &&
           groups.back().low < groups[groups.size() - 2].low + level_gap * groups[groups.size() - 2].high) {
      const Range last = groups.back();
      groups.pop_back();
      Range& group = groups.back();
      const double middle = (group.high * (group.low + 0.5 * level_gap * (group.high - 1.0)) +
                             last.high * (last.low + 0.5 * level_gap * (last.high - 1.0))) /
                            (group.high + last.high);
      group.high += last.high;
      group.low = std::clamp(middle - 0.5 * level_gap * (group.high - 1.0), 0.0,
                             std::max(0.0, height - level_gap * (group.high - 1.0)));
    }
  }
  std::size_t k = 0;
  for (const Range& group : groups) {
    for (double i = 0.0; i < group.high; i += 1.0) wanted[order[k++]] = group.low + level_gap * i;
  }
  return wanted;
}

void write_levels(Drawing& drawing, const LinePanel& panel, const Axes& axes, const Panel& place) {
  std::ostream& out = drawing.commands();
  const double height = place.top - place.bottom;
  std::vector<double> at;
  for (const LossLevel& level : panel.levels) {
    const double share = axes.logarithmic ? std::log(level.loss / axes.y.low) / std::log(axes.y.high / axes.y.low)
                                          : (level.loss - axes.y.low) / (axes.y.high - axes.y.low);
    at.push_back(height * share);
  }
  const std::vector<double> names = spread_names(at, height);
  const double canvas_width = drawing.size().width_points();
  const double canvas_height = drawing.size().height_points();
  const auto screen = [&](double x, double y) {
    return "screen " + number(x / canvas_width) + ", screen " + number((place.bottom + y) / canvas_height);
  };
  for (std::size_t k = 0; k < panel.levels.size(); ++k) {
    if (!std::isfinite(at[k])) continue;
    out << "set arrow from " << screen(place.right + 1.0, at[k]) << " to "
        << screen(place.right + leader - 2.0, names[k]) << " nohead lc rgb '" << grey << "' lw 0.7\n"
        << "set label " << literal(shortened(panel.levels[k].label, longest_label)) << " at "
        << screen(place.right + leader, names[k]) << " left font ',6'\n";
  }
}

std::vector<Drawing::Row> some(const std::vector<Drawing::Row>& rows, std::size_t member) {
  constexpr std::size_t wanted = 8;
  const std::size_t stride = std::max<std::size_t>(1, rows.size() / wanted);
  std::vector<Drawing::Row> few;
  for (std::size_t k = (member * 3) % stride; k < rows.size(); k += stride) few.push_back(rows[k]);
  return few;
}

void plot_panel(Drawing& drawing, const LinePanel& panel, const Axes& axes) {
  PlotList list(drawing.commands());
  const std::optional<double> floor = axes.logarithmic ? std::optional(axes.y.low) : std::nullopt;
  for (const LossLevel& level : panel.levels) {
    list.add(number(level.loss) + " with lines lc rgb '" + grey + "' lw 0.9 dt 14");
  }
  for (const Line& line : panel.lines) {
    if (!line.band.empty() && !line.curve.standard_error.empty()) {
      list.add(drawing.block(rows(line.curve, floor)) + " using 1:3:4 with filledcurves lc rgb '" + line.band + "'");
    }
  }
  for (std::size_t k = 0; k < panel.lines.size(); ++k) {
    const Line& line = panel.lines[k];
    const auto all = rows(line.curve, floor);
    if (!line.line.empty()) list.add(drawing.block(all) + " using 1:2 with lines " + line.line);
    if (line.point.empty()) continue;
    const bool every = line.line.empty() || all.size() <= most_marked;
    list.add(drawing.block(every ? all : some(all, k)) + " using 1:2 with points " + line.point);
  }
}

double level_room(const LinePanel& panel) {
  std::size_t longest = 0;
  for (const LossLevel& level : panel.levels) longest = std::max(longest, characters(level.label));
  return longest == 0 ? 0.0 : leader + level_character * static_cast<double>(std::min(longest, longest_label));
}

void draw_panel(Drawing& drawing, const LinePanel& panel, const Panel& at) {
  std::ostream& out = drawing.commands();
  const Axes shown = axes(panel);
  place(drawing, at);
  set_axes(drawing, panel, shown);
  write_axis_name(drawing, at, "'" + panel.y_name + "'", at.left - left_points + 7.0);
  if (!panel.name.empty()) {
    out << "set label " << literal(shortened(panel.name, 2 * longest_label)) << " at graph 0, graph 1.06 left\n";
  }
  for (const double x : panel.verticals) {
    out << "set arrow from first " << number(x) << ", graph 0 to first " << number(x)
        << ", graph 1 nohead back lc rgb '" << tint(ink, 0.45) << "' lw 0.8 dt 12\n";
  }
  write_levels(drawing, panel, shown, at);
  plot_panel(drawing, panel, shown);
  out << "unset label\nunset arrow\nunset object\n";
}

}  // namespace

void draw(const LineFigure& figure, const FigureFile& target) {
  for (const LinePanel& panel : figure.panels) {
    for (const Line& line : panel.lines) check(line.curve);
  }
  const std::size_t columns = figure.panels.size() > 1 ? 2 : 1;
  const std::size_t lines = (figure.panels.size() + columns - 1) / columns;
  const double width_cm = columns == 1 ? column_cm : page_cm;
  const double height_cm = columns == 1 ? single_panel_cm : panel_cm;
  const Head head(figure.title, figure.legend, width_cm);
  Drawing drawing({width_cm, head.height_cm() + static_cast<double>(lines) * (height_cm + axis_cm) +
                                 static_cast<double>(lines - 1) * between_cm});
  const double cm = Size::points_per_cm;
  const double column = drawing.size().width_points() / static_cast<double>(columns);
  drawing.commands() << "set multiplot\n";
  head.write(drawing);
  for (std::size_t k = 0; k < figure.panels.size(); ++k) {
    const double left = column * static_cast<double>(k % columns) + left_points;
    const double right = column * static_cast<double>(k % columns + 1) - right_points - level_room(figure.panels[k]);
    const auto below = static_cast<double>(lines - 1 - k / columns);
    const double bottom = (axis_cm + below * (height_cm + between_cm + axis_cm)) * cm;
    draw_panel(drawing, figure.panels[k], {left, right, bottom, bottom + height_cm * cm});
    // Title and legend stand on the canvas once.
  }
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

Line model_line(const Curve& curve, std::size_t series) {
  return {curve, simulation_line(colour(series), series),
          "pt " + std::to_string(point_type(series)) + " ps mark lc rgb '" + colour(series) + "'",
          tint(colour(series), 0.25)};
}

Line baseline_line(const Curve& curve, std::size_t series) {
  return {curve, theory_line(ink, series + 1), "", "", true};
}

LegendEntry entry(const Line& line) {
  const std::string band = line.curve.standard_error.empty() ? "" : line.band;
  return {shortened(line.curve.label, longest_label), line.line, line.point, band};
}

}  // namespace iclflow::plots
