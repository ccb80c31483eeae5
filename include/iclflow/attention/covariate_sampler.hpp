#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/attention/score_space.hpp"
#include "iclflow/problem/spectral_state.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// A law of contexts by what it changes of the training law (after Garg et al. 2022, arXiv:2208.01066, section 4).
struct Shift {
  std::string name{};                      ///< empty: the training law itself
  bool skewed_covariates = false;          ///< block covariances with eigenvalues ~ 1/k^2, trace d_i, in a random basis
  double input_scale = 1.0;                ///< covariates and query times this
  bool orthogonal_queries = false;         ///< the query's part orthogonal to all covariates, at its full length
  std::optional<double> noise_variance{};  ///< of eps, in place of the problem's

  [[nodiscard]] double noise(const Problem& problem) const { return noise_variance.value_or(problem.noise_variance); }
  /// Queries orthogonal to L covariates exist in more than L dimensions only.
  [[nodiscard]] bool exists(const Problem& problem) const {
    return !orthogonal_queries || problem.context_length < problem.dimension();
  }
};

/// Draws queries and covariates of a law, in the Phi basis. A draw is a pure function of its key, and laws share the
/// normals behind it. One object per thread: it owns the arrays that a view points to.
class CovariateSampler {
 public:
  /// seed: of the random basis of skewed covariates. Throws std::invalid_argument unless shift.exists(problem).
  CovariateSampler(const Problem& problem, const Shift& shift, std::uint64_t seed);
  /// Valid until the next draw.
  [[nodiscard]] CovariateView operator()(const StreamKey& key);

 private:
  void skew();
  void orthogonalise();

  Eigen::Index dimension_, length_;
  std::size_t stride_;
  double scale_;
  bool orthogonal_;
  std::vector<Eigen::Index> block_begin_;
  std::vector<Eigen::MatrixXd> roots_;  ///< x = root * normals, one per block; empty: identity
  AlignedArray<double> query_, covariates_;
};

}  // namespace iclflow
