#pragma once

#include <string>
#include <vector>

#include "iclflow/plots/figure.hpp"

namespace iclflow {

/// mu and omega block means of one dynamics, every head and task.
struct SpectrumSeries {
  std::string label;
  bool simulation = false;  ///< broad light line with band, else thin dark line
  std::vector<double> times;
  std::vector<double> mu;                    ///< time-major, heads x tasks entries a time
  std::vector<double> omega;                 ///< same shape: mean of omega^h over block J_i
  std::vector<double> mu_standard_error;     ///< same shape, or empty
  std::vector<double> omega_standard_error;  ///< same shape, or empty
};

/// Semi-singular values over time: one column of panels per task, mu above omega, one colour per head.
/// More than 4 tasks wrap, more than 12 are cut (the caption says so); beyond 8 heads only those that win a task are
/// coloured.
struct SpectrumFigure {
  std::string title;
  int heads = 0;
  int tasks = 0;
  std::vector<SpectrumSeries> series;
  std::vector<double> predicted_mu;     ///< per task, the dedicated head's limit; empty when there is none
  std::vector<double> predicted_omega;  ///< per task
  bool logarithmic_time = false;
};
/// Throws FigureError; std::invalid_argument when an array's length does not fit.
void draw(const SpectrumFigure& figure, const FigureFile& target);
[[nodiscard]] std::string caption(const SpectrumFigure& figure);

}  // namespace iclflow
