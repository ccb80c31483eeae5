#pragma once

#include <vector>

#include "iclflow/attention/kernels.hpp"

namespace iclflow {

/// Contexts that are worked on side by side: entry n of every array below belongs to context n of the group. One vector
/// of single precision at AVX-512; results do not depend on the width of the machine's vectors.
inline constexpr std::size_t contexts_per_group = 16;

/// Merged weights in the Phi, Psi basis as one step's contexts see them, and the sizes. a_k = s_y^2 lambda_k,
/// u_ik = (U^h_ik)_h, N_k = sum_i u_ik u_ik^T.
template <typename T>
struct ScoreSpaceWeights {
  std::size_t heads, dimension, tasks, rank, length;
  std::size_t width;                     ///< of a row of the gradient with respect to W: d, padded to whole vectors
  std::vector<std::size_t> block_begin;  ///< I + 1
  std::vector<T> amplitude;              ///< a_k
  T noise_variance;                      ///< sigma^2
  AlignedArray<T> key_query;             ///< W: (H d) x d
  AlignedArray<T> shared;                ///< a_k N_k: I x H x H
  AlignedArray<T> own;                   ///< a_k u_kk: I x H
  AlignedArray<T> noise;                 ///< sigma^2 sum_k N_k: H x H
  std::vector<T> linear;                 ///< c_h: c_h V_h stands for z_h in the part of known mean

  /// All arrays zero.
  ScoreSpaceWeights(std::size_t heads, std::size_t length, std::vector<std::size_t> block_begin);
  /// Standard normals behind a group: q (d x 16), then Z (L x r x 16).
  [[nodiscard]] std::size_t normals() const { return contexts_per_group * (dimension + length * rank); }
};

/// Memory that one thread needs for a group of contexts; every size times contexts_per_group.
template <typename T>
struct ScoreSpaceScratch {
  AlignedArray<T> normals;            ///< in: q, Z
  AlignedArray<T> present;            ///< in: 1, or 0 for a context that does not count
  AlignedArray<T> directions, basis;  ///< V = W q (H x d), B (r x d)
  AlignedArray<T> mixing;             ///< R: H x r
  AlignedArray<T> attention;          ///< L x H: scores, then exp of them
  AlignedArray<T> scale;              ///< H: 1 / sum exp
  AlignedArray<T> pooled, overlap;    ///< m (H x r), C (H x H)
  AlignedArray<T> second, pair;       ///< Z^T diag(p^h) Z (H x r x r), Z^T (p^h * p^g) (H x H x r)
  AlignedArray<T> left_over;          ///< tau: I
  AlignedArray<T> overlap_slope;      ///< sum_k (sigma^2 + a_k tau_k) N_k: H x H
  AlignedArray<T> cross;              ///< I x H x r: what a task's covariates share with B
  AlignedArray<T> slope;              ///< Gamma: H x d, then what of Vbar is not in B
  AlignedArray<T> slope_in_basis;     ///< B^T Gamma: H x r
  AlignedArray<T> score_slope;        ///< Z^T Sbar: H x r
  AlignedArray<T> direction_slope;    ///< Vbar less its linear part: H x d
  AlignedArray<T> query_rows;         ///< q, context by context: 16 x width
  explicit ScoreSpaceScratch(const ScoreSpaceWeights<T>& weights);
};

/// Sums over contexts of what the gradient is made of, less its linear part (theory: eq:score-space-control).
template <typename T>
struct ScoreSpaceSums {
  AlignedArray<T> key_query;  ///< (H d) x width: sum (Vbar_h - c_h Gamma0_h) q^T
  AlignedArray<T>
      overlap;  ///< I x H x H x 16, h' <= h: a_k (z_h^T z_g - c_h c_g V_h^T V_g)_{J_k} + (a_k tau_k + sigma^2) C
  AlignedArray<T> own;  ///< I x H x 16: a_k (z_h - c_h V_h)_{J_k}^T q
  explicit ScoreSpaceSums(const ScoreSpaceWeights<T>& weights);
  void clear(const ScoreSpaceWeights<T>& weights);
};

/// One group of contexts whose normals are drawn: adds to the sums. Vectorised over contexts with Highway, dispatched
/// at run time; allocates nothing.
template <typename T>
void score_space_group(const ScoreSpaceWeights<T>& weights, ScoreSpaceScratch<T>& scratch, ScoreSpaceSums<T>& sums);

}  // namespace iclflow
