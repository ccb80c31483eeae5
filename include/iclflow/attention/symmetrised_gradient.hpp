#pragma once

#include <cstdint>
#include <vector>

#include "iclflow/attention/token_estimator.hpp"

namespace iclflow {

/// Loss and acting gradient over a fixed set of contexts, each taken together with its images under sign flips of the
/// coordinates of x and of the responses in the bases Phi, Psi (theory: eq:sign-flips). The data law does not see the
/// flips, so the mean is still the population's; and it keeps the spectral manifold exactly invariant, as the
/// population does and no finite batch of plain contexts can: off-diagonal gradients of decomposable weights vanish to
/// rounding.
///
/// The flips are the columns of a Hadamard matrix of the smallest order 2^m >= d_x + d_y: a group in which every
/// product of two different coordinates averages to zero.
class SymmetrisedGradient {
 public:
  /// contexts: of the fixed set named by seed; each is used 2^m times. The team must outlive it.
  SymmetrisedGradient(const Problem& problem, const WeightLayout& layout, const Rotations& basis, std::uint64_t seed,
                      std::size_t contexts, ThreadTeam& team);

  [[nodiscard]] TokenEstimator<double>::Result operator()(const ActingWeights& weights);
  /// Gradient with respect to the flat parameters.
  void operator()(const Eigen::VectorXd& weights, Eigen::VectorXd& gradient);

  [[nodiscard]] std::size_t flips() const { return flips_; }
  [[nodiscard]] const WeightLayout& layout() const { return layout_; }

 private:
  /// Weights as seen by flipped data, and gradients back: an involution.
  [[nodiscard]] ActingWeights flipped(const ActingWeights& weights, std::size_t flip) const;

  WeightLayout layout_;
  Rotations basis_;
  std::uint64_t seed_;
  std::size_t contexts_;
  std::size_t flips_ = 1;
  TokenEstimator<double> estimator_;
};

}  // namespace iclflow
