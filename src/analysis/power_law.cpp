#include "iclflow/analysis/power_law.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace iclflow {
namespace {

struct LogPoints {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> weight;  // 1 / variance of log y
};

bool usable(double value) { return std::isfinite(value) && value > 0.0; }

LogPoints take_logs(std::span<const double> x, std::span<const double> y, std::span<const double> error) {
  const bool known = !error.empty();
  if (x.size() != y.size() || (known && error.size() != x.size())) {
    throw std::invalid_argument("a power law needs one y (and one standard error, if any) per x");
  }
  if (x.size() < (known ? 2U : 3U)) throw std::invalid_argument("too few points for a power law");
  if (std::all_of(x.begin(), x.end(), [&](double value) { return value == x.front(); })) {
    throw std::invalid_argument("a power law needs points at different x");
  }
  LogPoints points;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!usable(x[k]) || !usable(y[k]) || (known && !usable(error[k]))) {
      throw std::invalid_argument("a power law needs positive finite x, y and standard errors");
    }
    points.x.push_back(std::log(x[k]));
    points.y.push_back(std::log(y[k]));
    points.weight.push_back(known ? (y[k] / error[k]) * (y[k] / error[k]) : 1.0);
  }
  return points;
}

double weighted_mean(const std::vector<double>& weight, const std::vector<double>& values) {
  double total = 0.0;
  double sum = 0.0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    total += weight[k];
    sum += weight[k] * values[k];
  }
  return sum / total;
}

}  // namespace

double PowerLaw::operator()(double x) const { return prefactor * std::pow(x, exponent); }

double PowerLaw::deviation(double hypothesis) const { return (exponent - hypothesis) / exponent_standard_error; }

PowerLaw fit_power_law(std::span<const double> x, std::span<const double> y, std::span<const double> standard_error) {
  const LogPoints points = take_logs(x, y, standard_error);
  const double x_mean = weighted_mean(points.weight, points.x);
  const double y_mean = weighted_mean(points.weight, points.y);
  double total = 0.0;
  double xx = 0.0;
  double xy = 0.0;
  for (std::size_t k = 0; k < points.x.size(); ++k) {
    total += points.weight[k];
    xx += points.weight[k] * (points.x[k] - x_mean) * (points.x[k] - x_mean);
    xy += points.weight[k] * (points.x[k] - x_mean) * (points.y[k] - y_mean);
  }
  PowerLaw law;
  // slope = sum w (x - xm)(y - ym) / sum w (x - xm)^2, variance 1 / sum w (x - xm)^2
  law.exponent = xy / xx;
  const double intercept = y_mean - law.exponent * x_mean;
  law.prefactor = std::exp(intercept);
  for (std::size_t k = 0; k < points.x.size(); ++k) {
    const double residual = points.y[k] - intercept - law.exponent * points.x[k];
    law.chi_square += points.weight[k] * residual * residual;
  }
  law.degrees_of_freedom = static_cast<int>(points.x.size()) - 2;
  const double variance = standard_error.empty() ? law.chi_square / law.degrees_of_freedom : 1.0;
  law.exponent_standard_error = std::sqrt(variance / xx);
  law.log_prefactor_standard_error = std::sqrt(variance * (1.0 / total + x_mean * x_mean / xx));
  if (!standard_error.empty() && law.degrees_of_freedom > 0) {
    law.probability = boost::math::gamma_q(0.5 * law.degrees_of_freedom, 0.5 * law.chi_square);
  }
  return law;
}

}  // namespace iclflow
