#include "iclflow/analysis/power_law.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "iclflow/analysis/straight_line.hpp"

namespace iclflow {
namespace {

bool usable(double value) { return std::isfinite(value) && value > 0.0; }

struct LogPoints {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> error;  // of log y
};

LogPoints take_logs(std::span<const double> x, std::span<const double> y, std::span<const double> error) {
  const bool known = !error.empty();
  if (x.size() != y.size() || (known && error.size() != x.size())) {
    throw std::invalid_argument("a power law needs one y (and one standard error, if any) per x");
  }
  LogPoints points;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!usable(x[k]) || !usable(y[k]) || (known && !usable(error[k]))) {
      throw std::invalid_argument("a power law needs positive finite x, y and standard errors");
    }
    points.x.push_back(std::log(x[k]));
    points.y.push_back(std::log(y[k]));
    if (known) points.error.push_back(error[k] / y[k]);
  }
  return points;
}

}  // namespace

double PowerLaw::operator()(double x) const { return prefactor * std::pow(x, exponent); }

double PowerLaw::deviation(double hypothesis) const { return (exponent - hypothesis) / exponent_standard_error; }

PowerLaw fit_power_law(std::span<const double> x, std::span<const double> y, std::span<const double> standard_error) {
  const LogPoints points = take_logs(x, y, standard_error);
  const StraightLine line = fit_straight_line(points.x, points.y, points.error);
  PowerLaw law;
  law.exponent = line.slope;
  law.exponent_standard_error = line.slope_standard_error;
  law.prefactor = std::exp(line.intercept);
  law.log_prefactor_standard_error = line.intercept_standard_error;
  law.chi_square = line.chi_square;
  law.degrees_of_freedom = line.degrees_of_freedom;
  law.probability = line.probability;
  return law;
}

}  // namespace iclflow
