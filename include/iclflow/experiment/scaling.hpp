#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/table.hpp"
#include "iclflow/plots/scaling_figure.hpp"

namespace iclflow {

/// One [[scaling]]: columns of a sweep's table fitted against another one.
struct Scaling {
  std::string name;
  std::string x;
  std::vector<std::string> y;
  std::vector<std::string> labels;  ///< of y in the figure; the columns' names when empty
  /// A column that is taken off every y, row by row; empty: none. Taken as exact: it is a prediction, or was measured
  /// on the same evaluation contexts, whose error the difference does not have.
  std::string subtract;
  bool logarithm = false;          ///< y = a + b ln x, else y = c x^b
  std::string group;               ///< a column; one series per value; empty: none
  std::string members;             ///< glob on member names; empty: all
  std::optional<double> fit_from;  ///< range of x that is fitted
  std::optional<double> fit_to;
  std::optional<double> exponent;  ///< predicted
  std::string x_label;
  std::string y_label;
};

[[nodiscard]] std::vector<Scaling> read_scalings(const Section& root);

/// A fitted scaling: its entry of summary.json,
/// {name, form, x, predicted, series: [{y, group, points, exponent | slope, prefactor | intercept, each with
/// _standard_error, chi_square, degrees_of_freedom, probability, problem}]}, and its figure.
struct FittedScaling {
  nlohmann::ordered_json json;
  ScalingFigure figure;
};
[[nodiscard]] FittedScaling fit_scaling(const Scaling& scaling, const Table& table, const std::string& title);

}  // namespace iclflow
