#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace iclflow {

/// Where a figure goes: folder/stem.svg, folder/stem.pdf, folder/stem.png. The folder is made when missing.
/// Files appear whole or not at all: they are drawn under temporary names and renamed.
struct FigureFile {
  std::filesystem::path folder;
  std::string stem;
};

/// A figure could not be drawn: gnuplot is missing, died or hung, or the folder cannot be written. what() is one
/// sentence that says so, that the run's data are kept, and how to draw again.
class FigureError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct FigureKind {
  std::string_view name;
  std::string_view description;  ///< one line
};
/// All kinds, in the order `list` shows them: loss, spectrum, allocation, leakage, evaluation, scaling, regimes, and
/// those of sequence models: training, positions, weights, probes, few-shot.
[[nodiscard]] const std::vector<FigureKind>& figure_kinds();

/// One quantity over time. Times are those of d theta/dt = -grad ell.
struct Curve {
  std::string label;  ///< shown literally, whatever it contains
  std::vector<double> times;
  std::vector<double> values;          ///< one per time
  std::vector<double> standard_error;  ///< one per time, or empty: no band
};

/// Bands reach this many standard errors of the seeds' mean to either side.
inline constexpr double band_standard_errors = 2.0;

}  // namespace iclflow
