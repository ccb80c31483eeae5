#pragma once

#include <cstdint>

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// Where a run starts, on the spectral manifold.
///
/// Split weights need more than the products: each product x = s a b has a conserved C = a^2 - b^2
/// (a = O, b = V for mu; a = K, b = Q for omega), and K_Y, Q_Y may carry an inert diagonal that no score sees.
struct InitialState {
  Matrix mu;               ///< H x I
  Matrix omega;            ///< H x d_x
  Matrix imbalance_mu;     ///< H x I, C of (O, V); zero = balanced
  Matrix imbalance_omega;  ///< H x d_x, C of (K, Q)
  double inert = 0.0;      ///< diagonal of K_Y and Q_Y (split only)
};

/// Balanced start with the given products. omega is H x I or H x d_x.
[[nodiscard]] InitialState balanced_start(const Problem& problem, const Matrix& mu, const Matrix& omega);

/// mu = omega = scale, the own-task entry of head i (i < I) own_ratio times larger.
[[nodiscard]] InitialState aligned_start(const Problem& problem, double scale, double own_ratio);

/// The authors' own start: K = Q = L^{-3/4} I on all d_x + d_y coordinates, V_Y = O^T diagonal L^{-3/4}, own-task entry
/// twice that.
[[nodiscard]] InitialState authors_start(const Problem& problem);

/// mu (H x I) and omega (H x I, constant on blocks) independent scale * N(0, 1), keyed by seed; positive: their
/// absolute values; equal_omega: omega = scale instead.
[[nodiscard]] InitialState random_start(const Problem& problem, double scale, std::uint64_t seed, bool positive = false,
                                        bool equal_omega = false);

}  // namespace iclflow
