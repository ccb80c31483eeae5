#include "iclflow/plots/loss_figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "iclflow/analysis/monotone_cubic.hpp"
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
constexpr double ratio_for_logarithm = 30.0;

struct Mark {
  std::string symbol;
  double time;
};

std::vector<Mark> marks(const Phases& phases) {
  std::vector<Mark> result;
  if (phases.warm_up_end) result.push_back({"{/:Italic t}_w", *phases.warm_up_end});
  if (phases.emergence_time) result.push_back({"{/:Italic t}_0", *phases.emergence_time});
  if (phases.emergence_end) result.push_back({"{/:Italic t}_e", *phases.emergence_end});
  return result;
}

std::vector<LegendEntry> legend(const LossFigure& figure) {
  std::vector<LegendEntry> entries;
  for (std::size_t k = 0; k < figure.theory.size(); ++k) {
    entries.push_back({shortened(figure.theory[k].label, longest_label), theory_line(ink, k), "", ""});
  }
  for (std::size_t k = 0; k < figure.simulation.size(); ++k) {
    const std::string band = figure.simulation[k].standard_error.empty() ? "" : tint(colour(k), 0.25);
    entries.push_back({shortened(figure.simulation[k].label, longest_label), simulation_line(colour(k), 0), "", band});
  }
  for (std::size_t k = 0; k < figure.levels.size(); ++k) {
    entries.push_back(
        {shortened(figure.levels[k].label, longest_label), "lc rgb '" + colour(k + 2) + "' lw 1.1 dt 14", "", ""});
  }
  return entries;
}

struct Axes {
  Range time;
  Range loss;
  bool logarithmic_loss;
};

Axes axes(const LossFigure& figure) {
  std::vector<const std::vector<double>*> times;
  std::optional<Range> loss;
  std::optional<Range> positive;
  for (const auto* curves : {&figure.theory, &figure.simulation}) {
    for (const Curve& curve : *curves) {
      times.push_back(&curve.times);
      widen(loss, curve, false);
      widen(positive, curve, true);
    }
  }
  for (const LossLevel& level : figure.levels) {
    const Curve line{"", {0.0}, {level.loss}, {}};
    widen(loss, line, false);
    widen(positive, line, true);
  }
  const Range time = time_range(times, figure.logarithmic_time);
  if (!loss) return {time, {0.0, 1.0}, false};
  const bool logarithmic = positive && positive->high / positive->low > ratio_for_logarithm;
  if (logarithmic) return {time, {positive->low / 1.3, positive->high * 1.3}, true};
  return {time, {std::min(0.0, with_air(*loss, 0.05).low), with_air(*loss, 0.06).high}, false};
}

// Vertical lines at the theory's phases; their names stand above the panel, moved apart where the lines are close.
void write_phases(std::ostream& out, const LossFigure& figure, const Axes& axes, bool named) {
  const auto position = [&](double t) {
    const Range& range = axes.time;
    return figure.logarithmic_time ? std::log(t / range.low) / std::log(range.high / range.low)
                                   : (t - range.low) / (range.high - range.low);
  };
  constexpr double apart = 0.055;
  const std::vector<Mark> all = marks(figure.theory_phases);
  std::vector<double> place;
  for (const Mark& mark : all) place.push_back(position(mark.time));
  for (std::size_t k = 1; k < place.size(); ++k) {
    const double missing = apart - (place[k] - place[k - 1]);
    if (missing > 0.0) {
      place[k] += 0.5 * missing;
      for (std::size_t j = 0; j < k; ++j) place[j] -= 0.5 * missing;
    }
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double x = position(all[k].time);
    if (!(x >= 0.0 && x <= 1.0)) continue;
    out << "set arrow from graph " << number(x) << ", graph 0 to graph " << number(x)
        << ", graph 1 nohead back lc rgb '" << tint(ink, 0.45) << "' lw 0.8 dt 12\n";
    if (named) {
      out << "set label '" << all[k].symbol << "' at graph " << number(place[k]) << ", graph 1.045 center\n";
    }
  }
}

// Open circles where the simulation passes its phases.
std::vector<Drawing::Row> phase_points(const Curve& curve, const Phases& phases) {
  std::vector<Drawing::Row> points;
  if (curve.times.empty()) return points;
  const MonotoneCubic mean(curve.times, curve.values);
  for (const Mark& mark : marks(phases)) points.push_back({mark.time, mean(mark.time), NAN, NAN});
  return points;
}

void plot_bands_and_means(PlotList& list, Drawing& drawing, const std::vector<Curve>& curves,
                          std::optional<double> floor, bool thin) {
  for (std::size_t k = 0; k < curves.size(); ++k) {
    const std::string data = drawing.block(rows(curves[k], floor));
    if (!curves[k].standard_error.empty()) {
      list.add(data + " using 1:3:4 with filledcurves lc rgb '" + tint(colour(k), 0.25) + "'");
    }
    list.add(data + " using 1:2 with lines " + (thin ? theory_line(colour(k), 0) : simulation_line(colour(k), 0)));
  }
}

void plot_losses(Drawing& drawing, const LossFigure& figure, const Axes& axes) {
  const std::optional<double> floor = axes.logarithmic_loss ? std::optional(axes.loss.low) : std::nullopt;
  PlotList list(drawing.commands());
  plot_bands_and_means(list, drawing, figure.simulation, floor, false);
  for (std::size_t k = 0; k < figure.levels.size(); ++k) {
    list.add(number(figure.levels[k].loss) + " with lines lc rgb '" + colour(k + 2) + "' lw 1.1 dt 14");
  }
  for (std::size_t k = 0; k < figure.theory.size(); ++k) {
    list.add(drawing.block(rows(figure.theory[k], floor)) + " using 1:2 with lines " + theory_line(ink, k));
  }
  for (std::size_t k = 0; k < std::min(figure.simulation.size(), figure.simulation_phases.size()); ++k) {
    list.add(drawing.block(phase_points(figure.simulation[k], figure.simulation_phases[k])) +
             " using 1:2 with points pt 6 ps mark lw 1.3 lc rgb '" + colour(k) + "'");
  }
}

void main_panel(Drawing& drawing, const LossFigure& figure, const Axes& axes, const Panel& panel) {
  std::ostream& out = drawing.commands();
  place(drawing, panel);
  set_time_axis(drawing, axes.time, figure.logarithmic_time, figure.difference.empty());
  if (axes.logarithmic_loss) {
    out << "set logscale y\nset yrange [" << number(axes.loss.low) << ":" << number(axes.loss.high)
        << "]\nset format y " << (axes.loss.high / axes.loss.low < 1e3 ? "'%g'" : "'10^{%T}'") << "\n";
  } else {
    set_value_axis(drawing, axes.loss, 4, true);
  }
  write_axis_name(drawing, panel, "'population loss ℓ'");
  write_phases(out, figure, axes, true);
  plot_losses(drawing, figure, axes);
}

void difference_panel(Drawing& drawing, const LossFigure& figure, const Axes& axes, const Panel& panel) {
  std::ostream& out = drawing.commands();
  std::optional<Range> range = Range{0.0, 0.0};
  for (const Curve& curve : figure.difference) widen(range, curve, false);
  const Range shown = with_air(*range, 0.12);
  out << "unset label\nunset arrow\nunset object\n";
  place(drawing, panel);
  set_time_axis(drawing, axes.time, figure.logarithmic_time, true);
  set_value_axis(drawing, shown, 2, true);
  write_axis_name(drawing, panel, "'Δℓ / ℓ(0)'");
  write_phases(out, figure, axes, false);
  PlotList list(out);
  plot_bands_and_means(list, drawing, figure.difference, std::nullopt, true);
  list.add("0 with lines lc rgb '" + ink + "' lw 0.8");
}

}  // namespace

void draw(const LossFigure& figure, const FigureFile& target) {
  for (const auto* curves : {&figure.theory, &figure.simulation, &figure.difference}) {
    for (const Curve& curve : *curves) check(curve);
  }
  const Head head(figure.title, legend(figure), width_cm);
  const bool strip = !figure.difference.empty();
  const double height_cm = head.height_cm() + main_cm + (strip ? between_cm + strip_cm : 0.0) + axis_cm;
  Drawing drawing({width_cm, height_cm});
  const double right = drawing.size().width_points() - right_points;
  const double bottom = axis_cm * Size::points_per_cm;
  const double strip_top = bottom + strip_cm * Size::points_per_cm;
  const double main_bottom = strip ? strip_top + between_cm * Size::points_per_cm : bottom;
  const Axes shown = axes(figure);
  drawing.commands() << "set multiplot\n";
  head.write(drawing);
  main_panel(drawing, figure, shown, {left_points, right, main_bottom, main_bottom + main_cm * Size::points_per_cm});
  if (strip) difference_panel(drawing, figure, shown, {left_points, right, bottom, strip_top});
  drawing.commands() << "unset multiplot\n";
  drawing.finish(target);
}

std::string caption(const LossFigure& figure) {
  std::string text =
      "Population loss ℓ = ½ E|ŷ − y|², noise-free target, summed over tasks, against time t of the flow "
      "dθ/dt = −∇ℓ.";
  if (!figure.theory.empty()) text += " Dark thin lines: theory (reduced flow).";
  if (!figure.simulation.empty()) {
    text += " Light broad lines: full-parameter simulation, mean over seeds; bands: ±2 standard errors of that mean";
    text += axes(figure).logarithmic_loss ? " (of its logarithm)." : ".";
  }
  if (!figure.levels.empty()) text += " Dashed: predicted levels.";
  if (!marks(figure.theory_phases).empty()) {
    text +=
        " Vertical dotted lines: times at which the theory has lost 5 % (t_w), 50 % (t_0) and 95 % (t_e) of what it "
        "loses in all";
    text += figure.simulation_phases.empty() ? "." : "; open circles: the same times of the simulation.";
  }
  if (!figure.difference.empty()) text += " Lower strip: simulation minus theory, over the theory's initial loss.";
  return text;
}

}  // namespace iclflow
