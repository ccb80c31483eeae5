#include "iclflow/plots/allocation_figure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double width_cm = 17.8;  // two journal columns
constexpr double moment_cm = 0.1;
constexpr double row_heading_cm = 0.85;
constexpr double axis_cm = 1.0;
constexpr double row_gap_cm = 0.45;
constexpr double left_points = 30.0;
constexpr double bar_points = 48.0;  // colour bar and its numbers
constexpr double gutter_points = 14.0;
constexpr double character_points = 3.8;  // mean width at the figures' 7 point text
constexpr std::size_t longest_label = 90;
constexpr int most_numbered = 6;        // heads or tasks up to which shares are written into the cells
constexpr int most_vector_cells = 600;  // beyond, a map is a bitmap
constexpr double negligible = 0.005;

double map_cm(int heads) { return std::clamp(0.55 * heads, 1.4, 4.8); }

bool has_negative(const AllocationFigure& figure) {
  for (const ShareRow& row : figure.rows) {
    for (const ShareMap& map : row.maps) {
      if (std::any_of(map.share.begin(), map.share.end(), [](double s) { return s < -negligible; })) return true;
    }
  }
  return false;
}

// Light to dark, so that grey print keeps the order; opposite shares, where there are any, go to orange.
void write_palette(std::ostream& out, bool negative) {
  if (negative) {
    out << "set palette defined (-1 '#8A3D00', -0.5 '#E08A4B', 0 '#FFFFFF', 0.5 '#56A5D8', 1 '#00385C')\n"
        << "set cbrange [-1:1]\nset cbtics 0.5\n";
  } else {
    out << "set palette defined (0 '#FFFFFF', 0.5 '#56A5D8', 1 '#00385C')\nset cbrange [0:1]\nset cbtics 0.25\n";
  }
}

std::vector<Drawing::Row> cells(const ShareMap& map, int heads, int tasks) {
  std::vector<Drawing::Row> rows;
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < tasks; ++i) {
      rows.push_back(
          {static_cast<double>(i), static_cast<double>(h), map.share[static_cast<std::size_t>(h * tasks + i)], NAN});
    }
  }
  return rows;
}

void plot_map(Drawing& drawing, const AllocationFigure& figure, const ShareMap& map) {
  std::ostream& out = drawing.commands();
  if (map.share.empty()) {
    out << "set label 'not reached' at graph 0.5, graph 0.5 center textcolor rgb '" << grey << "'\nplot NaN notitle\n";
    return;
  }
  const std::string data = drawing.block(cells(map, figure.heads, figure.tasks));
  PlotList list(out);
  if (figure.heads * figure.tasks > most_vector_cells) {
    list.add(data + " using 1:2:3 with image pixels");
  } else {
    list.add(data + " using 1:2:(0.5):(0.5):3 with boxxyerror lc palette fillstyle solid 1 border rgb '#999999'");
  }
  if (std::max(figure.heads, figure.tasks) > most_numbered) return;
  // A minus zero is no sign worth printing. gprintf writes a true minus.
  const std::string text = "(gprintf('%.2f', abs($3) < 0.005 ? 0 : $3))";
  list.add(data + " using 1:2:(abs($3) < 0.6 ? " + text.substr(1, text.size() - 2) +
           " : '') with labels font ',6' textcolor rgb 'black'");
  list.add(data + " using 1:2:(abs($3) < 0.6 ? '' : " + text.substr(1, text.size() - 2) +
           ") with labels font ',6' textcolor rgb 'white'");
}

std::string time_text(double time) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, ", t = %.4g", time);
  return buffer;
}

struct Place {
  std::size_t row;
  std::size_t column;
};

std::string heading(const AllocationFigure& figure, const Place& at) {
  const ShareMap& map = figure.rows[at.row].maps[at.column];
  return shortened(figure.moments[at.column], 28) + (map.share.empty() ? "" : time_text(map.time));
}

bool headings_fit(const AllocationFigure& figure, double width) {
  for (std::size_t row = 0; row < figure.rows.size(); ++row) {
    for (std::size_t column = 0; column < figure.moments.size(); ++column) {
      const auto length = static_cast<double>(characters(heading(figure, {row, column})));
      if (character_points * length > width + gutter_points - 3.0) return false;
    }
  }
  return true;
}

int tic_step(int count) { return std::max(1, (count + 7) / 8); }

void write_map_axes(std::ostream& out, const AllocationFigure& figure, const Place& at) {
  out << "set xrange [-0.5:" << figure.tasks - 0.5 << "]\nset yrange [" << figure.heads - 0.5 << ":-0.5]\n"
      << "set xtics 0," << tic_step(figure.tasks) << "\nset ytics 0," << tic_step(figure.heads) << "\n"
      << "set format x '%g'\nset format y " << (at.column == 0 ? "'%g'" : "''") << "\n";
  out << (at.row + 1 == figure.rows.size() ? "set xlabel 'task' offset 0,0.8\n" : "unset xlabel\n");
}

void draw_map(Drawing& drawing, const AllocationFigure& figure, const Place& at, double head_cm) {
  constexpr double cm = Size::points_per_cm;
  const auto columns = static_cast<double>(figure.moments.size());
  const double usable = drawing.size().width_points() - left_points - bar_points;
  const double width = (usable - gutter_points * (columns - 1.0)) / columns;
  const double height = map_cm(figure.heads) * cm;
  const double left = left_points + static_cast<double>(at.column) * (width + gutter_points);
  const double top = drawing.size().height_points() -
                     (head_cm + moment_cm + row_heading_cm +
                      static_cast<double>(at.row) * (row_heading_cm + map_cm(figure.heads) + row_gap_cm)) *
                         cm;
  const ShareRow& row = figure.rows[at.row];
  const ShareMap& map = row.maps[at.column];
  std::ostream& out = drawing.commands();
  const Panel panel{left, left + width, top - height, top};
  place(drawing, panel);
  write_map_axes(out, figure, at);
  if (at.column == 0) write_axis_name(drawing, panel, "'head'");
  const auto above = [&](double points) { return "graph " + number(1.0 + points / height); };
  if (at.column == 0) {
    out << "set label " << literal(shortened(row.label, longest_label)) << " at graph 0, " << above(17.0) << " left\n";
  }
  out << "set label " << literal(heading(figure, at)) << " at graph 0.5, " << above(6.0) << " center"
      << (headings_fit(figure, width) ? "" : " font ',5.8'") << "\n";
  const bool last = at.column + 1 == figure.moments.size();
  if (last && at.row == 0) {
    out << "set colorbox user origin screen " << number((left + width + 12.0) / drawing.size().width_points())
        << ", screen " << number((top - height) / drawing.size().height_points()) << " size screen "
        << number(7.0 / drawing.size().width_points()) << ", screen " << number(height / drawing.size().height_points())
        << "\n"
        << "set label 'share' at graph 1, " << above(6.0) << " left offset char 1.5,0\n";
  } else {
    out << "unset colorbox\n";
  }
  plot_map(drawing, figure, map);
  out << "unset label\nunset arrow\nunset object\n";
}

void check(const AllocationFigure& figure) {
  if (figure.heads < 1 || figure.tasks < 1 || figure.moments.empty() || figure.rows.empty()) {
    throw std::invalid_argument("an allocation figure needs heads, tasks, moments and rows");
  }
  const auto cells = static_cast<std::size_t>(figure.heads) * static_cast<std::size_t>(figure.tasks);
  for (const ShareRow& row : figure.rows) {
    const bool fits = std::all_of(row.maps.begin(), row.maps.end(),
                                  [&](const ShareMap& map) { return map.share.empty() || map.share.size() == cells; });
    if (row.maps.size() != figure.moments.size() || !fits) {
      throw std::invalid_argument("row '" + row.label + "' needs one heads x tasks map per moment");
    }
  }
}

}  // namespace

void draw(const AllocationFigure& figure, const FigureFile& target) {
  check(figure);
  const Head head(figure.title, {}, width_cm);
  const auto rows = static_cast<double>(figure.rows.size());
  const double body = moment_cm + rows * (row_heading_cm + map_cm(figure.heads)) + (rows - 1.0) * row_gap_cm + axis_cm;
  const double head_cm = head.height_cm() - 0.35;  // no marks stand above these panels
  Drawing drawing({width_cm, head_cm + body});
  drawing.commands() << "set multiplot\nset border 15\nunset key\n";
  write_palette(drawing.commands(), has_negative(figure));
  head.write(drawing);
  for (std::size_t row = 0; row < figure.rows.size(); ++row) {
    for (std::size_t column = 0; column < figure.moments.size(); ++column) {
      draw_map(drawing, figure, {row, column}, head_cm);
    }
  }
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const AllocationFigure& figure) {
  std::string text =
      "Share of each head (row) in each task (column): μ of the head and task times the block mean of its ω, over the "
      "sum of all heads, so that a column adds up to 1. One line of maps per dynamics, time to the right; each map "
      "names its own time t.";
  if (has_negative(figure)) text += " Orange: heads that work against the others.";
  return text;
}

}  // namespace iclflow
