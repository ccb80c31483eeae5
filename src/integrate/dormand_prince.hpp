#pragma once

#include <Eigen/Core>

#include "single_step.hpp"

namespace iclflow {

/// The pair of Dormand and Prince, which also looks whether stability bounds its steps.
/// Source: Hairer, Norsett, Wanner, Solving Ordinary Differential Equations I, II.5 and IV.2 (volume II).
class DormandPrince final : public SingleStep {
 public:
  using SingleStep::SingleStep;

  /// Step size times the largest |eigenvalue| that the last step met.
  [[nodiscard]] double scaled_step() const;

 private:
  Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) override;
  [[nodiscard]] int error_power() const override { return 5; }

  Eigen::VectorXd k2_, k3_, k4_, k5_, k6_, stage_, error_;
  Eigen::VectorXd rate_change_;
  Eigen::VectorXd change_;
  double dt_ = 0.0;
};

}  // namespace iclflow
