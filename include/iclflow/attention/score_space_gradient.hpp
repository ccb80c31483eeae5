#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/attention/thread_team.hpp"
#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// What keeps weights from being trained in score space, in words that name the block and its size; empty when nothing
/// does. Scores must not read responses and values not covariates, and gradient descent must keep it so: split weights
/// need K_Y^T Q_X = 0, K_Y^T K_X = 0, O V_X = 0 and V_Y^T V_X = 0 (theory: eq:score-space-conditions), up to rounding.
/// Merged weights always qualify.
[[nodiscard]] std::optional<std::string> score_space_obstacle(const WeightLayout& layout,
                                                              const Eigen::VectorXd& weights);

/// Unbiased estimate of the population loss and its acting gradient for arbitrary weights whose scores do not read
/// responses and whose values do not read covariates. Per context: q and the tokens' coordinates Z (L x r normals,
/// r = min(H, d)) in the span of the heads' directions; their orthogonal rest, G and eps are integrated out, no token
/// is formed and nothing is differentiated through an orthogonalisation, so that heads with equal directions are no
/// special case (theory: eq:score-space-gradient-u, eq:score-space-gradient-w). What is linear in q at large L has a
/// known mean and is replaced by it (eq:score-space-control).
///
/// It is not the derivative of the loss at fixed (q, Z). Cost of a context: L r normals, 2 H d^2 + O(H^2 (d + L r))
/// multiplications.
///
/// Contexts come in groups of 16, each drawn from the sequence (seed, stream, step, number of the group); use
/// Stream::score_space, so that nothing is shared with contexts drawn token by token. Contexts are dealt to partial
/// sums whose number depends on the number of contexts only, added in order: same bits for any number of threads.
template <typename T>
class ScoreSpaceGradient {
 public:
  ScoreSpaceGradient(const Problem& problem, const WeightLayout& layout, const Rotations& basis, ThreadTeam& team);
  ~ScoreSpaceGradient();
  struct Result {
    double loss;
    ActingWeights gradient;  ///< blocks of responses in scores and covariates in values are zero, as their mean is
  };
  /// Means over contexts 0..contexts-1 of (key.seed, key.stream, key.step). The YX and U_X blocks are taken as zero:
  /// callers check score_space_obstacle once.
  [[nodiscard]] Result operator()(const ActingWeights& weights, const StreamKey& key, std::size_t contexts);

 private:
  struct Parts;
  void look_at(const ActingWeights& weights);
  void draw(const StreamKey& key, std::size_t group, std::size_t contexts, std::size_t worker);
  [[nodiscard]] Result collect(std::size_t parts, std::size_t contexts) const;
  void add_to_scores(std::size_t parts, double count, std::size_t h, Matrix& gradient) const;
  [[nodiscard]] double add_to_values(std::size_t parts, double count, ActingWeights& gradient) const;

  std::unique_ptr<Parts> parts_;
};

extern template class ScoreSpaceGradient<float>;
extern template class ScoreSpaceGradient<double>;

}  // namespace iclflow
