#include "iclflow/attention/paired_evaluation.hpp"

#include <algorithm>
#include <cmath>

namespace iclflow {

double PairedEstimate::standard_error() const { return std::hypot(contexts_error, members_error.value_or(0.0)); }

/// What one thread needs.
struct PairedEvaluation::Worker {
  CovariateSampler sampler;
  EstimatorLosses estimators;
  ScoreSpaceLoss weights;
  std::vector<double> losses;  ///< one per estimator
};

struct PairedEvaluation::Sums {
  std::vector<double> loss, square;              ///< by entry, over contexts
  std::vector<std::vector<double>> member_loss;  ///< by group and member
};

PairedEvaluation::PairedEvaluation(const Problem& problem, const Shift& shift, std::uint64_t seed, std::size_t contexts,
                                   const std::vector<Estimator>& estimators, const std::vector<WeightGroup>& groups,
                                   ThreadTeam& team)
    // The recorded loss of a simulation has step 0.
    : key_{seed, Stream::evaluation, static_cast<std::uint32_t>(problem.context_length), 0},
      contexts_(contexts),
      estimators_(estimators.size()),
      groups_(groups),
      team_(team) {
  Problem shifted = problem;
  shifted.noise_variance = shift.noise(problem);
  Sums empty{std::vector<double>(estimators_ + groups.size()), std::vector<double>(estimators_ + groups.size()), {}};
  std::size_t members = 0;
  for (const WeightGroup& group : groups) {
    empty.member_loss.emplace_back(group.members.size());
    members += group.members.size();
  }
  sums_.assign(parts, empty);
  for (std::size_t k = 0; k < team.size(); ++k) {
    workers_.push_back(std::make_unique<Worker>(Worker{CovariateSampler(problem, shift, seed),
                                                       EstimatorLosses(problem, estimators, shifted.noise_variance),
                                                       ScoreSpaceLoss(shifted), std::vector<double>(estimators_)}));
  }
  // Some 0.1 s between two looks at the outside.
  const double work = (1.0 + static_cast<double>(members)) * problem.dimension() * (16.0 + problem.context_length);
  per_part_ = 1 + static_cast<std::size_t>(5.0e5 / work);
}

PairedEvaluation::~PairedEvaluation() = default;

bool PairedEvaluation::advance() {
  team_.run(parts, [&](std::size_t part, std::size_t worker) {
    const std::size_t from = std::min(begin(part) + done_per_part_, begin(part + 1));
    const std::size_t to = std::min(from + per_part_, begin(part + 1));
    for (std::size_t c = from; c < to; ++c) add_context(c, *workers_[worker], sums_[part]);
  });
  done_per_part_ += per_part_;
  return done_per_part_ * parts < contexts_ + parts;
}

double PairedEvaluation::fraction() const {
  return std::min(1.0, static_cast<double>(done_per_part_ * parts) / static_cast<double>(contexts_));
}

void PairedEvaluation::add_context(std::size_t context, Worker& worker, Sums& sums) const {
  StreamKey key = key_;
  key.context = static_cast<std::uint32_t>(context);
  const CovariateView view = worker.sampler(key);
  worker.estimators(view, worker.losses);
  const auto add = [&](std::size_t entry, double loss) {
    sums.loss[entry] += loss;
    sums.square[entry] += loss * loss;
  };
  for (std::size_t k = 0; k < estimators_; ++k) add(k, worker.losses[k]);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    double mean = 0.0;
    for (std::size_t m = 0; m < groups_[g].members.size(); ++m) {
      const double loss = worker.weights(groups_[g].members[m], view, key);
      sums.member_loss[g][m] += loss;
      mean += loss;
    }
    add(estimators_ + g, mean / static_cast<double>(groups_[g].members.size()));
  }
}

std::vector<PairedEstimate> PairedEvaluation::estimates() const {
  const auto count = static_cast<double>(contexts_);
  std::vector<PairedEstimate> result(estimators_ + groups_.size());
  for (std::size_t k = 0; k < result.size(); ++k) {
    double square = 0.0;
    for (const Sums& part : sums_) {
      result[k].loss += part.loss[k] / count;
      square += part.square[k] / count;
    }
    const double variance = std::max(0.0, square - result[k].loss * result[k].loss);
    result[k].contexts_error = std::sqrt(variance / std::max(1.0, count - 1.0));
  }
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    PairedEstimate& mean = result[estimators_ + g];
    const auto members = static_cast<double>(groups_[g].members.size());
    if (members < 2.0) continue;
    double squares = 0.0;
    for (std::size_t m = 0; m < groups_[g].members.size(); ++m) {
      double own = 0.0;
      for (const Sums& part : sums_) own += part.member_loss[g][m] / count;
      squares += (own - mean.loss) * (own - mean.loss);
    }
    mean.members_error = std::sqrt(squares / (members * (members - 1.0)));
  }
  return result;
}

}  // namespace iclflow
