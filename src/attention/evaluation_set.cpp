#include "iclflow/attention/evaluation_set.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace iclflow {

namespace {

/// Partial sums over the set, added in order: same bits for any number of threads.
constexpr std::size_t partial_sums = 32;

}  // namespace

EvaluationSet::EvaluationSet(const Problem& problem, const Rotations& basis, std::uint64_t seed, std::size_t contexts,
                             ThreadTeam& team)
    : basis_(basis), seed_(seed), contexts_(contexts), team_(team) {
  for (std::size_t k = 0; k < team.size(); ++k) workers_.emplace_back(problem);
}

LossEstimate EvaluationSet::operator()(const ActingWeights& weights) {
  const RotatedWeights rotated(weights, basis_);
  std::array<double, partial_sums> sum{};
  std::array<double, partial_sums> square_sum{};
  team_.run(partial_sums, [&](std::size_t part, std::size_t worker) {
    for (std::size_t c = part * contexts_ / partial_sums; c < (part + 1) * contexts_ / partial_sums; ++c) {
      const double loss = workers_[worker](rotated, {seed_, Stream::evaluation, 0, static_cast<std::uint32_t>(c)});
      sum[part] += loss;
      square_sum[part] += loss * loss;
    }
  });
  double total = 0.0;
  double total_square = 0.0;
  for (std::size_t part = 0; part < partial_sums; ++part) {
    total += sum[part];
    total_square += square_sum[part];
  }
  const auto count = static_cast<double>(contexts_);
  const double mean = total / count;
  const double variance = std::max(0.0, total_square / count - mean * mean);
  return {mean, std::sqrt(variance / std::max(1.0, count - 1.0))};
}

}  // namespace iclflow
