#pragma once

#include <vector>

#include "iclflow/attention/score_space_attention.hpp"
#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

/// Acting weights in the Phi, Psi basis, where the law of the data is block diagonal.
struct RotatedWeights {
  struct Head {
    Matrix xx;  ///< d x d: scores from covariates
    Matrix yx;  ///< I x d: scores from responses
    Matrix ux;  ///< I x d: values from covariates
    Matrix uy;  ///< I x I: values from responses
  };
  std::vector<Head> heads;
  bool responses_scored = false;  ///< some yx is not zero

  RotatedWeights(const ActingWeights& weights, const Rotations& basis);
};

/// Query and covariates of one context, in the Phi basis, and where its sequence of normals goes on.
struct CovariateView {
  const double* query;       ///< d
  const double* covariates;  ///< d x padded(L): entry (j, l) at j * padded(L) + l; finite on the padding
  std::uint32_t next_group;  ///< first group of normals of the context's key that is not used yet
};

/// The population loss of arbitrary full weights given one context's draw in score space: q and the tokens' coordinates
/// Z (L x r normals) in the span of the heads' directions, the orthogonal rest, G and eps integrated out (theory:
/// eq:score-space-loss). A mean over draws is unbiased. One object per thread: it owns the scratch memory.
class ScoreSpaceLoss {
 public:
  explicit ScoreSpaceLoss(const Problem& problem);

  /// ell of the context `key`: half the squared error, noise-free target, summed over tasks.
  ///
  /// Keys that read responses (the YX block) make scores depend on G and eps. Their effect is added as the difference
  /// of two losses at one drawn (G, eps), with and without the block, on the same tokens: unbiased, and of small
  /// variance where the block is leakage.
  double operator()(const RotatedWeights& weights, const StreamKey& key);

  /// ell given q and all covariates, whatever their law; G and eps integrated out, and drawn from `key` for a YX block.
  double operator()(const RotatedWeights& weights, const CovariateView& context, const StreamKey& key);

  using Columns = Eigen::MatrixXd;  // column-major: one column per head

  /// The same for a given query and given coordinates of the tokens in a given B (d x r, orthonormal columns
  /// whose span holds every direction W^h q). Z: row k at k * padded(L), finite on the padding. Keys must not read
  /// responses.
  double operator()(const RotatedWeights& weights, const Eigen::VectorXd& query, const Columns& basis,
                    const double* coordinates);

 private:
  /// Attention of all heads for one choice of scores.
  struct Attended {
    Columns pooled;   ///< m = Z^T P, r x H
    Columns z;        ///< B m, d x H
    Columns overlap;  ///< C = P^T P, H x H
  };

  Columns score_directions(const RotatedWeights& weights, const StreamKey& key, std::uint32_t& group);
  double loss(const RotatedWeights& weights);
  void reserve_rank(Eigen::Index rank);
  std::uint32_t draw_responses(const StreamKey& key, std::uint32_t group);
  void attend(Eigen::Index first, bool noise_scored, Attended& out);
  Columns pooled_noise();
  [[nodiscard]] double integrated_loss(const RotatedWeights& weights, const Attended& at) const;
  [[nodiscard]] double drawn_loss(const RotatedWeights& weights, const Attended& at);
  [[nodiscard]] double orthogonal_power(const Attended& at, const std::vector<Matrix>& value) const;

  Eigen::Index heads_, dimension_, tasks_, length_;
  Eigen::Index largest_rank_;  ///< of B; with the YX block: directions with and without it
  std::size_t stride_;
  double noise_variance_, response_factor_;
  std::vector<Eigen::Index> block_begin_;
  std::vector<double> task_variance_;     ///< a_k = s_y^2 lambda_k
  std::vector<double> signal_deviation_;  ///< sqrt(lambda) per coordinate

  AlignedArray<double> normals_, signal_, noise_;  ///< behind q and Ghat (d), eps (I x stride)
  AlignedArray<double> pooled_noise_;              ///< H x padded(I)
  ScoreSpaceAttention attention_;                  ///< Z, P
  Eigen::VectorXd query_;
  Eigen::Index rank_ = 0;     ///< r
  Columns basis_, mixing_;    ///< B (d x r); R (r x H, or r x 2H with the YX block: without it, then with it)
  Columns task_weights_;      ///< s_y Ghat, d x I
  Columns noise_directions_;  ///< M_Y q, I x H
  Attended plain_, full_;     ///< without and with the YX block
};

}  // namespace iclflow
