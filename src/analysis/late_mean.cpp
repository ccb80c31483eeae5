#include "iclflow/analysis/late_mean.hpp"

#include <stdexcept>
#include <string>

namespace iclflow {

double late_mean(std::span<const double> samples) {
  if (samples.empty()) throw std::invalid_argument("the mean of no samples");
  const std::span<const double> late = samples.subspan(samples.size() / 2);
  double sum = 0.0;
  for (const double value : late) sum += value;
  return sum / static_cast<double>(late.size());
}

Estimate late_mean(const DynamicsResult& result, std::string_view observable) {
  std::vector<double> values;
  for (const Trajectory& member : result.members) {
    if (member.samples() > 0) values.push_back(late_mean(member[observable].values));
  }
  return mean_estimate(values);
}

}  // namespace iclflow
