#pragma once

#include <string>

#include "iclflow/plots/regimes_figure.hpp"
#include "iclflow/problem/problem.hpp"

namespace iclflow {

/// The figure "regimes": context lengths L / 16, L / 4, L, 4 L, 16 L of the problem (at least 2, at most 10^5), score
/// variances up to twice the freezing point 2 log L of the longest but one; points from sampled scores.
[[nodiscard]] RegimesFigure regimes_figure(const Problem& problem, const std::string& title);

/// E |p|^2 of softmax attention over L independent scores of variance a, from `contexts` draws.
struct SampledMoment {
  double value;
  double standard_error;
};
[[nodiscard]] SampledMoment sample_moment(double variance, int length, int contexts, std::uint64_t seed);

}  // namespace iclflow
