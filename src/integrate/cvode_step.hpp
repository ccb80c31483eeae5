#pragma once

#include <memory>

#include "single_step.hpp"

namespace iclflow {

/// Backward differentiation formulas of variable order of SUNDIALS, their Newton equations solved by a Krylov method
/// (SPGMR) with the dynamics' own Jacobian-vector products where it has them: for stiff dynamics of many variables.
/// A step of ours is as many steps of CVODE's as it needs to get there. What it keeps of earlier steps is out of reach
/// of a checkpoint: hence restart() at every sample. Judged by CVODE's root mean square of error / error_scale.
/// Source: Hindmarsh et al., ACM Trans. Math. Softw. 31, 363 (2005).
class CvodeStep final : public SingleStep {
 public:
  CvodeStep(const OdeSystem& system, const StepperOptions& options);
  ~CvodeStep() override;
  void restart() override { fresh_ = true; }
  [[nodiscard]] bool carries_order() const override { return true; }

 private:
  struct Solver;
  Attempt trial(const Point& from, double dt, Point& to, bool& rate_known) override;
  [[nodiscard]] int error_power() const override { return 2; }

  std::unique_ptr<Solver> solver_;
  bool fresh_ = true;
  double time_ = 0.0;      ///< where the solver stands
  Eigen::VectorXd state_;  ///< its state there
};

}  // namespace iclflow
