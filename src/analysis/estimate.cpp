#include "iclflow/analysis/estimate.hpp"

#include <cmath>
#include <stdexcept>

namespace iclflow {

Estimate mean_estimate(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("the mean of no values");
  const auto n = static_cast<double>(values.size());
  Estimate mean;
  for (const double value : values) mean.value += value / n;
  if (values.size() < 2) return mean;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.standard_error = std::sqrt(squares / (n - 1.0) / n);
  return mean;
}

}  // namespace iclflow
