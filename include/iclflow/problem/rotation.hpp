#pragma once

#include "iclflow/problem/spectral_state.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// The fixed orthogonal bases of the data law, G = Phi Ghat Psi^T: identity, or Haar-random keyed by rotation_seed.
struct Rotations {
  Matrix phi;  ///< d_x x d_x
  Matrix psi;  ///< d_y x d_y
};
/// Haar-distributed orthogonal matrix of the next size^2 numbers (Mezzadri 2007).
[[nodiscard]] Matrix random_orthogonal(NormalStream& normal, int size);
[[nodiscard]] Rotations rotations(const Problem& problem);

}  // namespace iclflow
