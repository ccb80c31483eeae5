#include <algorithm>
#include <cmath>

#include "iclflow/analysis/comparison.hpp"

namespace iclflow {
namespace {

std::vector<const Trajectory*> begun(const DynamicsResult& result) {
  std::vector<const Trajectory*> members;
  for (const Trajectory& member : result.members) {
    if (member.samples() > 0) members.push_back(&member);
  }
  return members;
}

// Members of one experiment sample the same times until the first of them stops.
std::size_t common_samples(const std::vector<const Trajectory*>& members) {
  std::size_t common = members.front()->samples();
  for (const Trajectory* member : members) {
    const auto& times = member->times;
    const auto parted =
        std::mismatch(times.begin(), times.end(), members.front()->times.begin(), members.front()->times.end());
    common = std::min(common, static_cast<std::size_t>(parted.first - times.begin()));
  }
  return common;
}

}  // namespace

Band seed_band(const DynamicsResult& result, std::string_view observable) {
  Band band;
  const std::vector<const Trajectory*> members = begun(result);
  if (members.empty()) return band;
  const std::size_t samples = common_samples(members);
  band.width = (*members.front())[observable].width();
  band.times.assign(members.front()->times.begin(),
                    members.front()->times.begin() + static_cast<std::ptrdiff_t>(samples));
  const std::size_t entries = samples * band.width;
  band.mean.assign(entries, 0.0);
  band.standard_error.assign(entries, 0.0);
  const auto n = static_cast<double>(members.size());
  for (const Trajectory* member : members) {
    const Observable& source = (*member)[observable];
    for (std::size_t k = 0; k < entries; ++k) band.mean[k] += source.values.at(k) / n;
  }
  if (members.size() < 2) return band;
  for (const Trajectory* member : members) {
    const Observable& source = (*member)[observable];
    for (std::size_t k = 0; k < entries; ++k) {
      band.standard_error[k] += (source.values[k] - band.mean[k]) * (source.values[k] - band.mean[k]);
    }
  }
  // standard error of the mean: sqrt( sum (x - mean)^2 / (n - 1) / n )
  for (double& entry : band.standard_error) entry = std::sqrt(entry / (n - 1.0) / n);
  return band;
}

}  // namespace iclflow
