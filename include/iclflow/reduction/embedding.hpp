#pragma once

#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/initial.hpp"
#include "iclflow/problem/rotation.hpp"

namespace iclflow {

/// Decomposable full parameters with the given products (theory/02-reduction.md).
/// split: K_X = A diag(k) Phi^T, Q_X = A diag(q) Phi^T, O = Psi diag(o) B^T, V_Y = B diag(v) Psi^T with A, B the first
/// d and the last I unit vectors of R^e; K and V positive, the sign of a product sits in Q and O.
[[nodiscard]] Eigen::VectorXd embed(const Problem& problem, const Rotations& basis, const InitialState& start);

}  // namespace iclflow
