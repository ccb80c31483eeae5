#pragma once

#include <cstdint>
#include <vector>

#include "iclflow/attention/symmetrised_gradient.hpp"
#include "iclflow/problem/initial.hpp"
#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

/// One growing (or slowest decaying) direction of the linearised full-parameter gradient flow at decomposable weights.
struct UnstableMode {
  double growth_rate = 0.0;  ///< eigenvalue of -Hessian of ell, per unit of time
  int head = 0;              ///< whose output-value entry (head, task) it moves most
  int task = 0;
  double share = 0.0;  ///< of its squared norm in row `task` of O and column `task` of V of that head (Psi basis)
  double antisymmetry = 0.0;  ///< -2 o.v / (|o|^2 + |v|^2) of these two: 1 when O row = -V column, -1 when balanced
};

struct SaddleOptions {
  int modes = 12;
  int contexts = 500;  ///< each used with all its sign flips
  std::uint64_t seed = 1;
};

/// Largest eigenvalues of the linearised flow of all weights, matrix-free: central differences of the symmetrised token
/// gradient. Split parametrisation. theory: eq:saddle-growth
[[nodiscard]] std::vector<UnstableMode> unstable_modes(const Problem& problem, const InitialState& at,
                                                       const SaddleOptions& options, ThreadTeam& team);

/// What the closure predicts for an output-value entry that is not used.
struct PredictedGrowth {
  int head = 0;
  int task = 0;
  double growth_rate = 0.0;  ///< g = d ell / d mu
  int multiplicity = 0;      ///< e minus the number of tasks that the head serves
};
/// Entries with |mu| below `unused` times the largest |mu| of the state, largest growth first.
[[nodiscard]] std::vector<PredictedGrowth> predicted_growth(const PopulationLoss& loss, const Problem& problem,
                                                            const Coordinates& coordinates, const SpectralState& state,
                                                            double unused = 1e-3);

}  // namespace iclflow
