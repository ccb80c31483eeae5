#pragma once

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// The fixed orthogonal bases of the data law, G = Phi Ghat Psi^T: identity, or Haar-random keyed by rotation_seed.
struct Rotations {
  Matrix phi;  ///< d_x x d_x
  Matrix psi;  ///< d_y x d_y
};
[[nodiscard]] Rotations rotations(const Problem& problem);

}  // namespace iclflow
