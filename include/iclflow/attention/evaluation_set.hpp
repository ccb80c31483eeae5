#pragma once

#include <cstdint>
#include <vector>

#include "iclflow/attention/score_space.hpp"
#include "iclflow/attention/thread_team.hpp"

namespace iclflow {

struct LossEstimate {
  double loss = 0.0;            ///< ell, mean over the contexts
  double standard_error = 0.0;  ///< of that mean over contexts
};

/// Population loss of arbitrary full weights on a fixed set of contexts drawn in score space, the same for every call.
/// Contexts are drawn anew, identically, each time: memory does not grow with their number.
class EvaluationSet {
 public:
  /// seed: names the set. The team must outlive it.
  EvaluationSet(const Problem& problem, const Rotations& basis, std::uint64_t seed, std::size_t contexts,
                ThreadTeam& team);
  [[nodiscard]] LossEstimate operator()(const ActingWeights& weights);

 private:
  Rotations basis_;
  std::uint64_t seed_;
  std::size_t contexts_;
  ThreadTeam& team_;
  std::vector<ScoreSpaceLoss> workers_;  ///< one per thread
};

}  // namespace iclflow
