#include "iclflow/plots/spectrum_figure.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "style.hpp"

namespace iclflow {
namespace {

using namespace plots;

constexpr double one_column_cm = 8.6;
constexpr double two_columns_cm = 17.8;
constexpr double panel_cm = 3.2;
constexpr double between_cm = 0.3;
constexpr double axis_cm = 1.15;
constexpr double heading_cm = 0.1;
constexpr double left_points = 40.0;
constexpr std::size_t most_points = 60000;  // of all curves together, so that the files stay small
constexpr double right_points = 10.0;
constexpr double gutter_points = 10.0;
constexpr int most_columns = 4;
constexpr int most_tasks = 12;
constexpr std::size_t most_coloured = 8;
constexpr std::size_t longest_label = 50;

struct Heads {
  std::vector<std::string> colours;     // per head
  std::vector<std::size_t> order;       // in which they are drawn, grey ones first
  std::vector<std::size_t> told_apart;  // heads with a colour, mark and legend entry of their own
  bool others = false;                  // grey heads exist
};

const std::string pale = "#BBBBBB";

// Heads that have the largest |mu omega| of some task at the end of the first series.
std::vector<std::size_t> winners(const SpectrumFigure& figure) {
  const auto heads = static_cast<std::size_t>(figure.heads);
  const auto tasks = static_cast<std::size_t>(figure.tasks);
  std::vector<std::size_t> result;
  if (figure.series.empty() || figure.series.front().times.empty()) return result;
  const SpectrumSeries& series = figure.series.front();
  const std::size_t last = (series.times.size() - 1) * heads * tasks;
  for (std::size_t i = 0; i < tasks; ++i) {
    std::size_t best = 0;
    double strongest = -1.0;
    for (std::size_t h = 0; h < heads; ++h) {
      const double strength = std::abs(series.mu[last + h * tasks + i] * series.omega[last + h * tasks + i]);
      if (strength > strongest) {
        strongest = strength;
        best = h;
      }
    }
    if (std::find(result.begin(), result.end(), best) == result.end()) result.push_back(best);
  }
  std::sort(result.begin(), result.end());
  return result;
}

Heads choose_heads(const SpectrumFigure& figure) {
  const auto count = static_cast<std::size_t>(figure.heads);
  Heads heads;
  heads.colours.assign(count, pale);
  if (count <= most_coloured) {
    for (std::size_t h = 0; h < count; ++h) heads.told_apart.push_back(h);
  } else {
    heads.told_apart = winners(figure);
    if (heads.told_apart.size() > most_coloured) heads.told_apart.resize(most_coloured);
    heads.others = true;
  }
  for (std::size_t k = 0; k < heads.told_apart.size(); ++k) heads.colours[heads.told_apart[k]] = colour(k);
  for (std::size_t h = 0; h < count; ++h) {
    if (heads.colours[h] == pale) heads.order.push_back(h);
  }
  heads.order.insert(heads.order.end(), heads.told_apart.begin(), heads.told_apart.end());
  return heads;
}

// Which of the series of its sort (theory or simulation) a series is; decides its dashes.
std::size_t rank(const SpectrumFigure& figure, std::size_t series) {
  std::size_t before = 0;
  for (std::size_t k = 0; k < series; ++k) before += figure.series[k].simulation == figure.series[series].simulation;
  return before;
}

std::vector<LegendEntry> legend(const SpectrumFigure& figure, const Heads& heads) {
  std::vector<LegendEntry> entries;
  for (std::size_t k = 0; k < heads.told_apart.size(); ++k) {
    entries.push_back({"head " + std::to_string(heads.told_apart[k]), "lc rgb '" + colour(k) + "' lw 1.1",
                       "pt " + std::to_string(point_type(k)) + " ps mark lc rgb '" + colour(k) + "'", ""});
  }
  if (heads.others) entries.push_back({"other heads", "lc rgb '" + pale + "' lw 1.1", "", ""});
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const SpectrumSeries& series = figure.series[s];
    const std::string line =
        series.simulation ? simulation_line(grey, rank(figure, s)) : theory_line(ink, rank(figure, s));
    entries.push_back(
        {shortened(series.label, longest_label), line, "", series.mu_standard_error.empty() ? "" : tint(grey, 0.25)});
  }
  if (!figure.predicted_mu.empty()) {
    entries.push_back({"predicted limit", "lc rgb '" + ink + "' lw 0.9 dt 14", "", ""});
  }
  return entries;
}

// One entry of a time-major heads x tasks array as a curve.
Curve entry(const SpectrumSeries& series, bool mu, std::size_t index, std::size_t width) {
  const std::vector<double>& values = mu ? series.mu : series.omega;
  const std::vector<double>& error = mu ? series.mu_standard_error : series.omega_standard_error;
  Curve curve{series.label, series.times, {}, {}};
  for (std::size_t k = 0; k < series.times.size(); ++k) {
    curve.values.push_back(values[k * width + index]);
    if (!error.empty()) curve.standard_error.push_back(error[k * width + index]);
  }
  return curve;
}

struct Canvas {
  Drawing& drawing;
  const SpectrumFigure& figure;
  const Heads& heads;
  Range time;
};

void plot_entries(const Canvas& canvas, std::size_t task, bool mu) {
  const SpectrumFigure& figure = canvas.figure;
  const auto tasks = static_cast<std::size_t>(figure.tasks);
  const auto heads = static_cast<std::size_t>(figure.heads);
  const auto& prediction = mu ? figure.predicted_mu : figure.predicted_omega;
  PlotList list(canvas.drawing.commands());
  std::vector<std::string> bands, broad, thin;
  const std::size_t curves = 2 * heads * std::min<std::size_t>(tasks, most_tasks) * figure.series.size();
  const std::size_t most = std::clamp<std::size_t>(most_points / std::max<std::size_t>(curves, 1), 60, 400);
  for (std::size_t s = 0; s < figure.series.size(); ++s) {
    const SpectrumSeries& series = figure.series[s];
    for (const std::size_t h : canvas.heads.order) {
      const Curve curve = entry(series, mu, h * tasks + task, heads * tasks);
      const std::string data = canvas.drawing.block(rows(curve, std::nullopt, most));
      const std::string& shade = canvas.heads.colours[h];
      if (!curve.standard_error.empty() && shade != pale) {
        bands.push_back(data + " using 1:3:4 with filledcurves lc rgb '" + tint(shade, 0.25) + "'");
      }
      auto& lines = series.simulation ? broad : thin;
      lines.push_back(
          data + " using 1:2 with lines " +
          (series.simulation ? simulation_line(shade, rank(figure, s)) : theory_line(shade, rank(figure, s))));
    }
  }
  for (const auto* layer : {&bands, &broad, &thin}) {
    for (const std::string& item : *layer) list.add(item);
  }
  if (task < prediction.size()) list.add(number(prediction[task]) + " with lines lc rgb '" + ink + "' lw 0.9 dt 14");
  if (figure.series.empty()) return;
  for (std::size_t k = 0; k < canvas.heads.told_apart.size(); ++k) {
    const std::size_t h = canvas.heads.told_apart[k];
    const Curve curve = entry(figure.series.front(), mu, h * tasks + task, heads * tasks);
    list.add(
        canvas.drawing.block(marks(curve, canvas.time, figure.logarithmic_time, k, canvas.heads.told_apart.size())) +
        " using 1:2 with points pt " + std::to_string(point_type(k)) + " ps mark lc rgb '" + colour(k) + "'");
  }
}

Range value_range(const SpectrumFigure& figure, bool mu) {
  std::optional<Range> range = Range{0.0, 0.0};
  for (const SpectrumSeries& series : figure.series) {
    // Every entry at every time belongs to one axis, so the whole array is one curve here.
    const auto& values = mu ? series.mu : series.omega;
    widen(range,
          Curve{"", std::vector<double>(values.size()), values,
                mu ? series.mu_standard_error : series.omega_standard_error},
          false);
  }
  const auto& predicted = mu ? figure.predicted_mu : figure.predicted_omega;
  widen(range, Curve{"", std::vector<double>(predicted.size()), predicted, {}}, false);
  return with_air(*range, 0.07);
}

struct Grid {
  int columns;
  int groups;  // pairs of rows (mu above omega)
  double group_cm;
};

Grid grid(int tasks) {
  const int columns = std::min(tasks, most_columns);
  return {columns, (tasks + columns - 1) / columns, heading_cm + 2.0 * panel_cm + between_cm + axis_cm};
}

void draw_task(const Canvas& canvas, const Grid& layout, int task, double head_cm, const Range& mu,
               const Range& omega) {
  constexpr double cm = Size::points_per_cm;
  const Size& size = canvas.drawing.size();
  const double usable = size.width_points() - left_points - right_points;
  const double width = (usable - gutter_points * (layout.columns - 1)) / layout.columns;
  const int column = task % layout.columns;
  const double left = left_points + column * (width + gutter_points);
  const double top = size.height_points() - (head_cm + layout.group_cm * (task / layout.columns) + heading_cm) * cm;
  const double middle = top - panel_cm * cm;
  const double lower = middle - between_cm * cm;
  std::ostream& out = canvas.drawing.commands();
  const Panel upper_panel{left, left + width, middle, top};
  const Panel lower_panel{left, left + width, lower - panel_cm * cm, lower};
  place(canvas.drawing, upper_panel);
  set_time_axis(canvas.drawing, canvas.time, canvas.figure.logarithmic_time, false);
  set_value_axis(canvas.drawing, mu, 4, column == 0);
  if (column == 0) write_axis_name(canvas.drawing, upper_panel, "'output-value {/:Italic μ}'");
  out << "set label 'task " << task << "' at graph 0.5, graph 1.06 center\n";
  plot_entries(canvas, static_cast<std::size_t>(task), true);
  out << "unset label\nunset arrow\nunset object\n";
  place(canvas.drawing, lower_panel);
  set_time_axis(canvas.drawing, canvas.time, canvas.figure.logarithmic_time, true);
  set_value_axis(canvas.drawing, omega, 4, column == 0);
  if (column == 0) write_axis_name(canvas.drawing, lower_panel, "'key-query {/:Italic ω} (mean)'");
  plot_entries(canvas, static_cast<std::size_t>(task), false);
  out << "unset label\n";
}

void check(const SpectrumFigure& figure) {
  if (figure.heads < 1 || figure.tasks < 1) throw std::invalid_argument("a spectrum needs heads and tasks");
  const auto width = static_cast<std::size_t>(figure.heads) * static_cast<std::size_t>(figure.tasks);
  for (const SpectrumSeries& series : figure.series) {
    const std::size_t entries = series.times.size() * width;
    const auto fits = [&](const std::vector<double>& error) { return error.empty() || error.size() == entries; };
    if (series.mu.size() != entries || series.omega.size() != entries || !fits(series.mu_standard_error) ||
        !fits(series.omega_standard_error)) {
      throw std::invalid_argument("series '" + series.label + "' needs heads x tasks entries per time");
    }
  }
}

}  // namespace

void draw(const SpectrumFigure& figure, const FigureFile& target) {
  check(figure);
  const int tasks = std::min(figure.tasks, most_tasks);
  const Grid layout = grid(tasks);
  const Heads heads = choose_heads(figure);
  const double width_cm = layout.columns == 1 ? one_column_cm : two_columns_cm;
  const Head head(figure.title, legend(figure, heads), width_cm);
  Drawing drawing({width_cm, head.height_cm() + layout.group_cm * layout.groups});
  std::vector<const std::vector<double>*> times;
  for (const SpectrumSeries& series : figure.series) times.push_back(&series.times);
  const Canvas canvas{drawing, figure, heads, time_range(times, figure.logarithmic_time)};
  const Range mu = value_range(figure, true);
  const Range omega = value_range(figure, false);
  drawing.commands() << "set multiplot\n";
  head.write(drawing);
  for (int task = 0; task < tasks; ++task) draw_task(canvas, layout, task, head.height_cm(), mu, omega);
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const SpectrumFigure& figure) {
  std::string text =
      "Semi-singular values over time t of the flow dθ/dt = −∇ℓ, one column per task: above μ, the output-value "
      "entry of each head; below ω, the key-query entries (score scale included) averaged over the task's block of "
      "covariates.";
  const auto any = [&](bool simulation) {
    return std::any_of(figure.series.begin(), figure.series.end(),
                       [&](const SpectrumSeries& series) { return series.simulation == simulation; });
  };
  if (any(false)) text += " Thin lines: theory.";
  if (any(true)) text += " Broad lines: simulation, mean over seeds; bands: ±2 standard errors of that mean.";
  if (!figure.predicted_mu.empty()) text += " Dashed: the dedicated head's predicted limit.";
  if (figure.heads > static_cast<int>(most_coloured)) text += " Grey: heads that win no task.";
  if (figure.tasks > most_tasks) {
    text += " Shown are the first " + std::to_string(most_tasks) + " of " + std::to_string(figure.tasks) + " tasks.";
  }
  return text;
}

}  // namespace iclflow
