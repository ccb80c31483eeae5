#pragma once

#include "iclflow/attention/kernels.hpp"

namespace iclflow {

/// Attention of all heads over one context, given by its tokens' coordinates Z (L x r) in score space and the heads'
/// directions R (r x H) there: P = softmax of the columns of Z R, m = Z^T P, C = P^T P; and the way back. P lies behind
/// Z in memory, so that one pass over r + H rows yields m and C. Owns its memory; allocates nothing after
/// construction.
class ScoreSpaceAttention {
 public:
  ScoreSpaceAttention(std::size_t largest_rank, std::size_t heads, std::size_t length);

  /// r of the calls that follow, at most largest_rank.
  void set_rank(std::size_t rank) { rank_ = rank; }
  [[nodiscard]] std::size_t stride() const { return stride_; }

  /// To be filled before score(): Z, row k of r at k * stride, finite on the padding; column h of R.
  [[nodiscard]] double* coordinates() { return tokens_.get(); }
  [[nodiscard]] double* mixing(std::size_t h) { return direction_.get() + h * row_; }
  /// Scores Z R; attention(h) may then be changed before attend().
  void score();
  /// Scores -> P, m, C.
  void attend();

  /// Scores of head h after score(), its weights p after attend(); stride numbers, those of the padding zero.
  [[nodiscard]] double* attention(std::size_t h) { return tokens_.get() + (rank_ + h) * stride_; }
  [[nodiscard]] const double* attention(std::size_t h) const { return tokens_.get() + (rank_ + h) * stride_; }
  [[nodiscard]] const double* pooled(std::size_t h) const { return pooled_.get() + h * row_; }           ///< m, r
  [[nodiscard]] const double* overlap(std::size_t h) const { return pooled_.get() + h * row_ + rank_; }  ///< C, H
  [[nodiscard]] std::size_t pooled_stride() const { return row_; }  ///< between the heads of pooled and overlap

  /// To be filled before pull_back(): slopes of a function with respect to m, and N with f = .. + (1/2) <N, C>.
  [[nodiscard]] double* pooled_slope(std::size_t h) { return slope_direction_.get() + h * row_; }
  [[nodiscard]] double* overlap_slope(std::size_t h) { return slope_direction_.get() + h * row_ + rank_; }
  /// f's slopes with respect to the scores and to R:
  ///   Pbar = Z mbar + P N,  Sbar_h = p_h * (Pbar_h - <p_h, Pbar_h>),  Rbar = Z^T Sbar.
  void pull_back();
  [[nodiscard]] const double* mixing_slope(std::size_t h) const { return mixing_slope_.get() + h * row_; }

 private:
  std::size_t heads_, length_, stride_, row_, rank_;
  AlignedArray<double> tokens_;           ///< (r + H) x stride: Z, then P
  AlignedArray<double> score_slope_;      ///< H x stride
  AlignedArray<double> direction_;        ///< H x row: R
  AlignedArray<double> pooled_;           ///< H x row: m, then C
  AlignedArray<double> slope_direction_;  ///< H x row: mbar, then N
  AlignedArray<double> mixing_slope_;     ///< H x row
};

}  // namespace iclflow
