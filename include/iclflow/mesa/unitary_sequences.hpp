#pragma once

#include <cstdint>

#include "iclflow/spectral/product_flow.hpp"

namespace iclflow {

/// x_{t+1} = W x_t with a fresh W for each sequence.
enum class TransitionKind : std::uint8_t {
  unitary,  ///< W = diag(exp(i theta_j)) on C^d, theta_j uniform and independent; x_1 real
  rotation  ///< rotations by uniform independent angles in d/2 planes of R^d
};
/// Law of x_1; moments with an odd exponent vanish for all of them. c: initial_scale.
enum class FirstState : std::uint8_t {
  normal,   ///< N(0, c^2) each
  uniform,  ///< U(-c, c) each
  signs,    ///< c or -c each
  sparse    ///< one coordinate is c or -c, all others zero; rotation: one plane, radius c, uniform phase
};

/// Distribution of x_1 .. x_T. The model predicts x_{t+1} from x_1 .. x_t for t = 2 .. T - 1.
struct UnitarySequences {
  TransitionKind kind = TransitionKind::unitary;
  int dimension = 5;  ///< d; even for rotations
  int length = 100;   ///< T
  FirstState initial = FirstState::normal;
  double initial_scale = 1.0;

  [[nodiscard]] int predictions() const { return length - 2; }
  /// Independent phases: d, or d/2 planes.
  [[nodiscard]] int phases() const { return kind == TransitionKind::unitary ? dimension : dimension / 2; }
};

/// Moments of x_1. With z_j = x_j (unitary), or the j-th plane's complex coordinate (rotation):
struct StateMoments {
  double second = 0.0;        ///< E |z_j|^2
  double second_alone = 0.0;  ///< the same, given that z_j is not zero
  double kappa1 = 0.0;        ///< E |z_j|^4
  double kappa2 = 0.0;        ///< E |z_j|^6
  double kappa3 = 0.0;        ///< sum_{r != j} E |z_j|^2 |z_r|^4
};
[[nodiscard]] StateMoments state_moments(const UnitarySequences& sequences);

/// Population loss of linear attention with the key-query block a I and the value block b I as a function of s = a b:
/// half the squared error summed over t and coordinates; copies = d. Sources: theory/12-autoregressive-flow.md.
[[nodiscard]] ProductLoss product_loss(const UnitarySequences& sequences);

/// Mean over x_1 (given a coordinate that is not zero) of yhat_t / x_{t+1} for t -> infinity, at the product s.
[[nodiscard]] double mean_ratio(const UnitarySequences& sequences, double product);

}  // namespace iclflow
