#include "dormand_prince.hpp"

#include "step_kernels.hpp"

namespace iclflow {

Attempt DormandPrince::trial(const Point& from, double dt, Point& to, bool& rate_known) {
  const Eigen::VectorXd& y = from.state;
  const Eigen::VectorXd& k1 = from.rate;
  combine({{1.0, y}, {dt / 5.0, k1}}, stage_);
  velocity(stage_, k2_);
  combine({{1.0, y}, {dt * 3.0 / 40.0, k1}, {dt * 9.0 / 40.0, k2_}}, stage_);
  velocity(stage_, k3_);
  combine({{1.0, y}, {dt * 44.0 / 45.0, k1}, {-dt * 56.0 / 15.0, k2_}, {dt * 32.0 / 9.0, k3_}}, stage_);
  velocity(stage_, k4_);
  combine({{1.0, y},
           {dt * 19372.0 / 6561.0, k1},
           {-dt * 25360.0 / 2187.0, k2_},
           {dt * 64448.0 / 6561.0, k3_},
           {-dt * 212.0 / 729.0, k4_}},
          stage_);
  velocity(stage_, k5_);
  combine({{1.0, y},
           {dt * 9017.0 / 3168.0, k1},
           {-dt * 355.0 / 33.0, k2_},
           {dt * 46732.0 / 5247.0, k3_},
           {dt * 49.0 / 176.0, k4_},
           {-dt * 5103.0 / 18656.0, k5_}},
          stage_);
  velocity(stage_, k6_);
  combine({{1.0, y},
           {dt * 35.0 / 384.0, k1},
           {dt * 500.0 / 1113.0, k3_},
           {dt * 125.0 / 192.0, k4_},
           {-dt * 2187.0 / 6784.0, k5_},
           {dt * 11.0 / 84.0, k6_}},
          to.state);
  velocity(to.state, to.rate);
  rate_known = true;
  combine({{dt * 71.0 / 57600.0, k1},
           {-dt * 71.0 / 16695.0, k3_},
           {dt * 71.0 / 1920.0, k4_},
           {-dt * 17253.0 / 339200.0, k5_},
           {dt * 22.0 / 525.0, k6_},
           {-dt / 40.0, to.rate}},
          error_);
  dt_ = dt;
  combine({{1.0, to.rate}, {-1.0, k6_}}, rate_change_);
  combine({{1.0, to.state}, {-1.0, stage_}}, change_);
  return judge(from, dt, error_);
}

double DormandPrince::scaled_step() const {
  // dt |f(y7) - f(y6)| / |y7 - y6|, both at the end of the step           theory: eq:stiffness-test
  const double length = change_.norm();
  return length > 0.0 ? dt_ * rate_change_.norm() / length : 0.0;
}

}  // namespace iclflow
