#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "single_step.hpp"

namespace iclflow {

/// Largest |eigenvalue| of the Jacobian along a solution, from velocities alone: power iteration on differences of the
/// velocity, which goes on from the direction of the last call. Source: Sommeijer, Shampine, Verwer, RKC,
/// J. Comput. Appl. Math. 88, 315 (1998).
class SpectralRadius {
 public:
  using Velocity = std::function<void(const Eigen::VectorXd& y, Eigen::VectorXd& rate)>;

  /// Estimate with a safety factor of 1.2; costs one velocity where the last estimate still holds.
  double update(const Point& at, const Velocity& velocity);
  [[nodiscard]] double value() const { return safety * radius_; }
  [[nodiscard]] bool known() const { return radius_ > 0.0; }

  /// All that the next update depends on, appended to `memory`; and back, from `begin`.
  void save(std::vector<double>& memory) const;
  void recall(const std::vector<double>& memory, std::size_t begin);

 private:
  static constexpr double safety = 1.2;
  static constexpr double agreement = 0.05;  ///< relative change at which the iteration ends
  static constexpr int maximum_iterations = 50;

  double radius_ = 0.0;
  Eigen::VectorXd direction_;
  Eigen::VectorXd moved_, rate_;
};

}  // namespace iclflow
