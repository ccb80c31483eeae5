#include "style.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace iclflow::plots {
namespace {

const std::string time_label = "'time {/:Italic t}   (d{/:Italic θ}/d{/:Italic t} = −∇ℓ)'";

}  // namespace

const std::string& colour(std::size_t member) {
  static const std::array<std::string, 8> colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                  "#56B4E9", "#E69F00", "#5D3A9B", "#6B6B6B"};
  return colours[member % colours.size()];
}

std::string tint(const std::string& colour, double strength) {
  std::string result = "#";
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const int full = std::stoi(colour.substr(1 + 2 * channel, 2), nullptr, 16);
    std::array<char, 3> hex{};
    std::snprintf(hex.data(), hex.size(), "%02X",
                  static_cast<unsigned>(std::lround(255.0 - strength * (255 - full))) & 0xFFU);
    result += hex.data();
  }
  return result;
}

std::string simulation_line(const std::string& colour, std::size_t series) {
  return "lc rgb '" + tint(colour, 0.55) + "' " + (series % 2 == 1 ? "lw 3.21 dt 15" : "lw 3.2");
}

std::string dashes(std::size_t series) {
  // gnuplot's svg carries a line's dashes over to the next line of equal colour and width, hence the hundredths.
  static const std::array<std::string, 4> kinds{" lw 1.10 dt 1", " lw 1.11 dt 11", " lw 1.12 dt 12", " lw 1.13 dt 13"};
  return kinds[series % kinds.size()];
}

std::string theory_line(const std::string& colour, std::size_t series) {
  return "lc rgb '" + colour + "'" + dashes(series);
}

void place(Drawing& drawing, const Panel& panel) {
  const double width = drawing.size().width_points();
  const double height = drawing.size().height_points();
  drawing.commands() << "set lmargin at screen " << number(panel.left / width) << "\nset rmargin at screen "
                     << number(panel.right / width) << "\nset bmargin at screen " << number(panel.bottom / height)
                     << "\nset tmargin at screen " << number(panel.top / height) << "\n";
}

Range time_range(const std::vector<const std::vector<double>*>& times, bool logarithmic) {
  std::optional<Range> range;
  for (const auto* series : times) {
    for (const double t : *series) {
      if (!std::isfinite(t) || (logarithmic && !(t > 0.0))) continue;
      range = range ? Range{std::min(range->low, t), std::max(range->high, t)} : Range{t, t};
    }
  }
  if (!range) return {logarithmic ? 0.1 : 0.0, 1.0};
  if (!(range->high > range->low)) range->high = range->low > 0.0 ? 2.0 * range->low : range->low + 1.0;
  return *range;
}

void set_time_axis(Drawing& drawing, const Range& range, bool logarithmic, bool labelled) {
  std::ostream& out = drawing.commands();
  out << (logarithmic ? "set logscale x\n" : "unset logscale x\n");
  out << "set xrange [" << number(range.low) << ":" << number(range.high) << "]\n";
  const bool powers = logarithmic && range.high / range.low > 1e3;
  out << "set format x " << (labelled ? (powers ? "'10^{%T}'" : "'%g'") : "''") << "\n";
  if (labelled) {
    out << "set xlabel " << time_label << " offset 0,0.5\n";
  } else {
    out << "unset xlabel\n";
  }
}

Range with_air(Range data, double share) {
  const double span = data.high > data.low ? data.high - data.low : std::max(std::abs(data.high), 1.0);
  return {data.low - share * span, data.high + share * span};
}

double tic_interval(const Range& range, int tics) {
  const double interval = (range.high - range.low) / tics;
  const double power = std::pow(10.0, std::floor(std::log10(interval)));
  return power * (interval / power < 2.0 ? 1.0 : (interval / power < 5.0 ? 2.0 : 5.0));
}

void set_value_axis(Drawing& drawing, const Range& range, int tics, bool labelled) {
  drawing.commands() << "unset logscale y\nset yrange [" << number(range.low) << ":" << number(range.high)
                     << "]\nset ytics " << number(tic_interval(range, tics)) << "\nset format y "
                     << (labelled ? "'%g'" : "''") << "\n";
}

std::string logarithmic_tics(const Range& range, bool labelled) {
  const double decades = std::log10(range.high / range.low);
  std::string text;
  for (int power = static_cast<int>(std::floor(std::log10(range.low))); std::pow(10.0, power) <= range.high; ++power) {
    for (const int factor : {1, 2, 5}) {
      const double value = factor * std::pow(10.0, power);
      if (value < range.low || value > range.high || (decades > 3.0 && factor > 1)) continue;
      const bool plain = power >= -4 && power <= 5;
      const std::string name = plain ? number(value) : "10^{" + std::to_string(power) + "}";
      text += (text.empty() ? "" : ", ") + ("'" + (labelled ? name : std::string()) + "' ") + number(value);
    }
  }
  return "(" + text + ")";
}

void write_axis_name(Drawing& drawing, const Panel& panel, const std::string& name, double left) {
  drawing.commands() << "set label " << name << " at screen " << number(left / drawing.size().width_points())
                     << ", screen " << number(0.5 * (panel.bottom + panel.top) / drawing.size().height_points())
                     << " center rotate by 90\n";
}

void check(const Curve& curve) {
  if (curve.values.size() != curve.times.size() ||
      (!curve.standard_error.empty() && curve.standard_error.size() != curve.times.size())) {
    throw std::invalid_argument("curve '" + curve.label + "' needs one value (and standard error, if any) per time");
  }
}

Range band(const Curve& curve, std::size_t k, bool logarithmic) {
  const double value = curve.values[k];
  if (curve.standard_error.empty()) return {value, value};
  const double half = band_standard_errors * curve.standard_error[k];
  if (!logarithmic) return {value - half, value + half};
  // standard error of log x: standard error of x, over x
  return {value * std::exp(-half / value), value * std::exp(half / value)};
}

std::vector<Drawing::Row> rows(const Curve& curve, std::optional<double> floor, std::size_t most) {
  std::vector<Drawing::Row> result;
  const std::size_t n = curve.times.size();
  const std::size_t stride = n / most + 1;
  for (std::size_t k = 0; k < n; k = (k + stride < n || k + 1 == n) ? k + stride : n - 1) {
    if (floor && !(curve.values[k] > 0.0)) {
      result.push_back({curve.times[k], NAN, NAN, NAN});
      continue;
    }
    const Range around = band(curve, k, floor.has_value());
    const double low = floor ? std::max(around.low, *floor) : around.low;
    result.push_back({curve.times[k], curve.values[k], low, around.high});
  }
  return result;
}

void widen(std::optional<Range>& range, const Curve& curve, bool positive) {
  for (std::size_t k = 0; k < curve.values.size(); ++k) {
    if (positive && !(curve.values[k] > 0.0)) continue;
    const Range around = band(curve, k, positive);
    for (const double value : {curve.values[k], around.low, around.high}) {
      if (!std::isfinite(value) || (positive && !(value > 0.0))) continue;
      range = range ? Range{std::min(range->low, value), std::max(range->high, value)} : Range{value, value};
    }
  }
}

std::vector<Drawing::Row> marks(const Curve& curve, const Range& time, bool logarithmic, std::size_t member,
                                std::size_t members) {
  constexpr int count = 6;
  std::vector<Drawing::Row> result;
  if (curve.times.empty()) return result;
  const double shift = (static_cast<double>(member) + 0.5) / static_cast<double>(std::max<std::size_t>(members, 1));
  for (int k = 0; k < count; ++k) {
    const double share = (k + shift) / count;
    const double t =
        logarithmic ? time.low * std::pow(time.high / time.low, share) : time.low + share * (time.high - time.low);
    if (t > curve.times.back()) break;
    const auto after = std::lower_bound(curve.times.begin(), curve.times.end(), t);
    const auto sample = static_cast<std::size_t>(after - curve.times.begin());
    result.push_back({curve.times[sample], curve.values[sample], NAN, NAN});
  }
  return result;
}

int point_type(std::size_t member) {
  static const std::array<int, 8> types{6, 4, 8, 12, 7, 5, 9, 13};
  return types[member % types.size()];
}

}  // namespace iclflow::plots
