#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

struct OptimumOptions {
  int starts = 20;  ///< independent random starts
  std::uint64_t seed = 1;
  /// Bound on e^s: zero-sum heads reach their infimum only as omega -> 0, and rounding grows as 1e-16 / |omega|^2.
  double smallest_scale = 1e-3;
};

/// The best weights on the spectral manifold that a search from many starts has found.
struct Optimum {
  double loss = 0.0;             ///< ell of the best start (half, noise-free target, summed over tasks)
  SpectralState state;           ///< of the best start; omega over the given Coordinates
  std::vector<double> minima{};  ///< losses where the starts ended, sorted
  /// kappa of `loss` for equal tasks: x L / (phi d_i), x = ell / (P/2 - ell), P and ell summed; empty otherwise.
  std::optional<double> coefficient;
};

/// Minimises a closure over all heads' mu and omega, no parametrisation and no flow involved: quasi-Newton (L-BFGS)
/// from random starts in the variables (m, w, s), mu = m e^{-s}, omega = w e^s, in which the approach of zero-sum heads
/// to omega -> 0 is fast. Throws std::invalid_argument for fewer than one start, std::domain_error when no start ends
/// at a finite loss. theory: eq:optimum-variables
[[nodiscard]] Optimum find_optimum(const PopulationLoss& loss, const Problem& problem, const Coordinates& coordinates,
                                   const OptimumOptions& options);

}  // namespace iclflow
