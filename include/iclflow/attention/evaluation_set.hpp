#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "iclflow/attention/thread_team.hpp"
#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/rotation.hpp"

namespace iclflow {

struct LossEstimate {
  double loss = 0.0;            ///< ell, mean over the contexts
  double standard_error = 0.0;  ///< of that mean over contexts
};

/// Population loss of arbitrary full weights on a fixed set of contexts, the same for every call.
///
/// A context is drawn in score space: given q, the tokens enter only through their coordinates Z (L x r normals) in
/// the span of the heads' directions; the orthogonal rest, G and eps are integrated out (theory: eq:score-space-loss).
/// Keys that read responses (the YX block) make scores depend on G and eps. Their effect is added as the difference of
/// two losses at one drawn (G, eps), with and without the block: unbiased for the full model, and of small variance
/// because the block is leakage.
class EvaluationSet {
 public:
  /// seed: names the set. Contexts are drawn anew, identically, at each call: no memory per context.
  EvaluationSet(const Problem& problem, const Rotations& basis, std::uint64_t seed, std::size_t contexts,
                ThreadTeam& team);
  ~EvaluationSet();
  [[nodiscard]] LossEstimate operator()(const ActingWeights& weights);

 private:
  struct Law;
  struct Worker;
  std::unique_ptr<const Law> law_;
  Rotations basis_;
  std::uint64_t seed_;
  std::size_t contexts_;
  ThreadTeam& team_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace iclflow
