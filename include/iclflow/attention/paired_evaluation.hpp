#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/attention/covariate_sampler.hpp"
#include "iclflow/attention/estimators.hpp"
#include "iclflow/attention/thread_team.hpp"

namespace iclflow {

/// Weights that are one entry of an evaluation: a simulation's seeds, or a single set.
struct WeightGroup {
  std::string name;
  std::vector<RotatedWeights> members;
};

struct PairedEstimate {
  double loss = 0.0;            ///< ell, mean over contexts and members
  double contexts_error = 0.0;  ///< standard error over contexts of the members' mean loss
  /// Standard error over members of their mean losses; empty with fewer than two. Members see the same contexts, so
  /// their losses differ by their weights.
  std::optional<double> members_error{};

  /// Both errors in quadrature: of the loss as that of a new seed's weights on new contexts.
  [[nodiscard]] double standard_error() const;
};

/// Losses of classical estimators and of attention weights on the same queries and covariates, with G and eps
/// integrated out: differences between entries are the entries', not the contexts'. Contexts are dealt to a fixed
/// number of partial sums, added in order: same bits for any number of threads.
class PairedEvaluation {
 public:
  /// problem: the training law, its context_length that of the contexts. seed names the contexts: those of one length
  /// are the same for every shift but for what the shift changes. The groups and the team must outlive it.
  /// Throws std::invalid_argument unless shift.exists(problem).
  PairedEvaluation(const Problem& problem, const Shift& shift, std::uint64_t seed, std::size_t contexts,
                   const std::vector<Estimator>& estimators, const std::vector<WeightGroup>& groups, ThreadTeam& team);
  ~PairedEvaluation();

  /// Evaluates some more contexts; false when all are done.
  bool advance();
  [[nodiscard]] double fraction() const;  ///< of the contexts that are done
  /// Estimators, then groups, in their order.
  [[nodiscard]] std::vector<PairedEstimate> estimates() const;

 private:
  struct Worker;
  struct Sums;
  static constexpr std::size_t parts = 32;
  [[nodiscard]] std::size_t begin(std::size_t part) const { return part * contexts_ / parts; }
  void add_context(std::size_t context, Worker& worker, Sums& sums) const;

  StreamKey key_;
  std::size_t contexts_, per_part_, done_per_part_ = 0;
  std::size_t estimators_;
  const std::vector<WeightGroup>& groups_;
  ThreadTeam& team_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Sums> sums_;
};

}  // namespace iclflow
