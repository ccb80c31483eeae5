#pragma once

#include <optional>
#include <string>
#include <vector>

#include "drawing.hpp"

namespace iclflow::plots {

// Colours of Okabe and Ito (distinct to the colour-blind), dark ones first; further members cycle.
[[nodiscard]] const std::string& colour(std::size_t member);
/// The colour mixed with white; strength 1 leaves it, 0 is white.
[[nodiscard]] std::string tint(const std::string& colour, double strength);
inline const std::string ink = "#000000";
inline const std::string grey = "#777777";

/// Broad light line of a simulation's mean, thin dark line of a theory.
[[nodiscard]] std::string simulation_line(const std::string& colour, std::size_t series);
/// Width and dashes of a thin line, by series.
[[nodiscard]] std::string dashes(std::size_t series);
[[nodiscard]] std::string theory_line(const std::string& colour, std::size_t series);

struct LegendEntry {
  std::string text;
  std::string line;       ///< line properties, or empty
  std::string point;      ///< point properties, or empty
  std::string band;       ///< fill colour, or empty
  bool enhanced = false;  ///< text is ours and carries gnuplot's marks; else it is shown literally
};
[[nodiscard]] std::size_t characters(std::string_view text);
[[nodiscard]] std::string shortened(const std::string& text, std::size_t longest);

/// Title and legend above all panels. Knows its own height, so that no panel is covered.
class Head {
 public:
  Head(const std::string& title, std::vector<LegendEntry> legend, double width_cm);
  [[nodiscard]] double height_cm() const;
  void write(Drawing& drawing) const;

 private:
  std::vector<std::string> title_lines_;
  std::vector<LegendEntry> legend_;
  std::size_t columns_ = 1;
  [[nodiscard]] std::size_t rows() const;
};

/// A panel's plotting area in points from the canvas' lower left corner.
struct Panel {
  double left;
  double right;
  double bottom;
  double top;
};
/// Margins of the next plot command.
void place(Drawing& drawing, const Panel& panel);

struct Range {
  double low;
  double high;
};
/// Where all curves live in time; logarithmic: from the first positive time.
[[nodiscard]] Range time_range(const std::vector<const std::vector<double>*>& times, bool logarithmic);
void set_time_axis(Drawing& drawing, const Range& range, bool logarithmic, bool labelled);
/// Linear axis from the data's ends with a little air.
[[nodiscard]] Range with_air(Range data, double share);
/// Length of at least `tics` intervals in a range: 1, 2 or 5 times a power of ten.
[[nodiscard]] double tic_interval(const Range& range, int tics);
/// Linear value axis with at least `tics` intervals of a round length.
void set_value_axis(Drawing& drawing, const Range& range, int tics, bool labelled);
/// Tics for `set ytics`: at 1, 2 and 5 times powers of ten; at powers only over more than three decades.
[[nodiscard]] std::string logarithmic_tics(const Range& range, bool labelled);
/// The axis' name, upright at `left` points from the canvas' edge, next to the panel's middle.
void write_axis_name(Drawing& drawing, const Panel& panel, const std::string& name, double left = 7.0);

/// Rows (t, value, low, high) of a curve, at most about `most` of them; a logarithmic axis needs a floor for the band.
[[nodiscard]] std::vector<Drawing::Row> rows(const Curve& curve, std::optional<double> floor = std::nullopt,
                                             std::size_t most = 600);
/// Throws std::invalid_argument when the arrays of a curve differ in length.
void check(const Curve& curve);
/// Ends of the band at sample k; on a logarithmic axis that of the logarithm, which stays positive.
[[nodiscard]] Range band(const Curve& curve, std::size_t k, bool logarithmic);
/// Smallest and largest finite value with its band; positive: of the positive values only, for a logarithmic axis.
void widen(std::optional<Range>& range, const Curve& curve, bool positive);

/// Places spread evenly along the time axis where member `member` of `members` carries its marks, so that lines that
/// coincide stay told apart without colour. Rows (t, value).
[[nodiscard]] std::vector<Drawing::Row> marks(const Curve& curve, const Range& time, bool logarithmic,
                                              std::size_t member, std::size_t members);
/// gnuplot point type of a member, distinct for eight.
[[nodiscard]] int point_type(std::size_t member);

/// One plot command, item by item; without items an empty panel.
class PlotList {
 public:
  explicit PlotList(std::ostream& out) : out_(out) {}
  ~PlotList() { out_ << (first_ ? "plot NaN notitle\n" : "\n"); }
  PlotList(const PlotList&) = delete;
  PlotList& operator=(const PlotList&) = delete;
  void add(const std::string& item) {
    out_ << (first_ ? "plot " : ", \\\n  ") << item << " notitle";
    first_ = false;
  }

 private:
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace iclflow::plots
