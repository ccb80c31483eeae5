#include "spectral_radius.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace iclflow {

double SpectralRadius::update(const Point& at, const Velocity& velocity) {
  if (direction_.size() != at.state.size()) direction_ = at.rate;
  const double size = std::sqrt(std::numeric_limits<double>::epsilon()) * std::max(at.state.norm(), 1e-3);
  for (int iteration = 0; iteration < maximum_iterations; ++iteration) {
    double length = direction_.norm();
    if (!(length > 0.0) || !std::isfinite(length)) {
      direction_.setOnes(at.state.size());
      length = direction_.norm();
    }
    // |f(y + e) - f(y)| / |e|, e along the last difference                theory: eq:power-iteration
    moved_ = at.state + (size / length) * direction_;
    velocity(moved_, rate_);
    direction_ = rate_ - at.rate;
    const double before = radius_;
    radius_ = direction_.norm() / size;
    if (!std::isfinite(radius_)) {  // the difference reached where the velocity is not defined
      radius_ = before;
      direction_.setOnes(at.state.size());
      break;
    }
    if (std::abs(radius_ - before) <= agreement * radius_) break;
  }
  return value();
}

void SpectralRadius::save(std::vector<double>& memory) const {
  memory.push_back(radius_);
  memory.insert(memory.end(), direction_.begin(), direction_.end());
}

void SpectralRadius::recall(const std::vector<double>& memory, std::size_t begin) {
  radius_ = memory[begin];
  const auto rest = static_cast<Eigen::Index>(memory.size() - begin - 1);
  direction_ = Eigen::Map<const Eigen::VectorXd>(memory.data() + begin + 1, rest);
}

}  // namespace iclflow
