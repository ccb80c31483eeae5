#include "iclflow/analysis/straight_line.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace iclflow {
namespace {

void check(std::span<const double> x, std::span<const double> y, std::span<const double> error) {
  const bool known = !error.empty();
  if (x.size() != y.size() || (known && error.size() != x.size())) {
    throw std::invalid_argument("a fit needs one y (and one standard error, if any) per x");
  }
  if (x.size() < (known ? 2U : 3U)) throw std::invalid_argument("too few points for a fit");
  if (std::all_of(x.begin(), x.end(), [&](double value) { return value == x.front(); })) {
    throw std::invalid_argument("a fit needs points at different x");
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0.0; };
  if (!std::all_of(x.begin(), x.end(), finite) || !std::all_of(y.begin(), y.end(), finite) ||
      !std::all_of(error.begin(), error.end(), positive)) {
    throw std::invalid_argument("a fit needs finite x, y and positive standard errors");
  }
}

double weighted_mean(const std::vector<double>& weight, std::span<const double> values) {
  double total = 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    total += weight[k];
    sum += weight[k] * values[k];
  }
  return sum / total;
}

}  // namespace

StraightLine fit_straight_line(std::span<const double> x, std::span<const double> y,
                               std::span<const double> standard_error) {
  check(x, y, standard_error);
  const bool known = !standard_error.empty();
  std::vector<double> weight;
  for (std::size_t k = 0; k < x.size(); ++k) {
    weight.push_back(known ? 1.0 / (standard_error[k] * standard_error[k]) : 1.0);
  }
  StraightLine line;
  line.x_mean = weighted_mean(weight, x);
  line.y_mean = weighted_mean(weight, y);
  double total = 0.0;
  double xx = 0.0;
  double xy = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    total += weight[k];
    xx += weight[k] * (x[k] - line.x_mean) * (x[k] - line.x_mean);
    xy += weight[k] * (x[k] - line.x_mean) * (y[k] - line.y_mean);
  }
  // slope = sum w (x - xm)(y - ym) / sum w (x - xm)^2, variance 1 / sum w (x - xm)^2
  line.slope = xy / xx;
  line.intercept = line.y_mean - line.slope * line.x_mean;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double residual = y[k] - line.intercept - line.slope * x[k];
    line.chi_square += weight[k] * residual * residual;
  }
  line.degrees_of_freedom = static_cast<int>(x.size()) - 2;
  const double variance = known ? 1.0 : line.chi_square / line.degrees_of_freedom;
  line.slope_standard_error = std::sqrt(variance / xx);
  line.intercept_standard_error = std::sqrt(variance * (1.0 / total + line.x_mean * line.x_mean / xx));
  if (known && line.degrees_of_freedom > 0) {
    line.probability = boost::math::gamma_q(0.5 * line.degrees_of_freedom, 0.5 * line.chi_square);
  }
  return line;
}

StraightLine fit_logarithm(std::span<const double> x, std::span<const double> y,
                           std::span<const double> standard_error) {
  std::vector<double> logarithms;
  for (const double value : x) {
    if (!(value > 0.0)) throw std::invalid_argument("a logarithm needs positive x");
    logarithms.push_back(std::log(value));
  }
  return fit_straight_line(logarithms, y, standard_error);
}

}  // namespace iclflow
