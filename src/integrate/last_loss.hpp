#pragma once

#include <string>

#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

/// Loss at `state`, or the last finite one sampled, for a failure message; "unknown" where the dynamics has none.
[[nodiscard]] std::string last_finite_loss(const Dynamics& dynamics, const Eigen::VectorXd& state,
                                           const Trajectory& trajectory);

}  // namespace iclflow
