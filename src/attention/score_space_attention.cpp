#include "iclflow/attention/score_space_attention.hpp"

namespace iclflow {

ScoreSpaceAttention::ScoreSpaceAttention(std::size_t largest_rank, std::size_t heads, std::size_t length)
    : heads_(heads),
      length_(length),
      stride_(padded(length)),
      row_(padded(largest_rank + heads)),
      rank_(largest_rank),
      tokens_(aligned_zeros<double>((largest_rank + heads) * stride_)),
      score_slope_(aligned_zeros<double>(heads * stride_)),
      direction_(aligned_zeros<double>(heads * row_)),
      pooled_(aligned_zeros<double>(heads * row_)),
      slope_direction_(aligned_zeros<double>(heads * row_)),
      mixing_slope_(aligned_zeros<double>(heads * row_)) {}

void ScoreSpaceAttention::score() {
  scores(tokens_.get(), stride_, rank_, direction_.get(), row_, heads_, attention(0));
}

void ScoreSpaceAttention::attend() {
  // P = softmax of the columns of Z R,  [m; C] = [Z, P]^T P               theory: eq:score-space-attention
  softmax(attention(0), stride_, length_, heads_);
  pool(tokens_.get(), stride_, rank_ + heads_, attention(0), heads_, pooled_.get(), row_);
}

void ScoreSpaceAttention::pull_back() {
  // Pbar = [Z, P] [mbar; N],  Sbar_h = p_h * (Pbar_h - <p_h, Pbar_h>),  Rbar = Z^T Sbar
  //                                                                       theory: eq:score-space-pull-back
  scores(tokens_.get(), stride_, rank_ + heads_, slope_direction_.get(), row_, heads_, score_slope_.get());
  softmax_backward(attention(0), score_slope_.get(), stride_, heads_);
  pool(tokens_.get(), stride_, rank_, score_slope_.get(), heads_, mixing_slope_.get(), row_);
}

}  // namespace iclflow
