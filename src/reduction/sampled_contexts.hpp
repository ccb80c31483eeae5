#pragma once

#include <vector>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/reduction/sampled_loss.hpp"

namespace iclflow {

/// The contexts of SampledLoss: lengths chi of the query's parts and coordinates Z of the tokens, in groups.
class SampledLoss::Contexts {
 public:
  static constexpr int groups = smallest / 2;

  Contexts(const Problem& problem, const Coordinates& coordinates, const SampledOptions& options);
  [[nodiscard]] int begin(int group) const {
    return static_cast<int>(static_cast<std::int64_t>(group) * contexts_ / groups);
  }
  [[nodiscard]] std::size_t stride() const { return stride_; }
  /// K lengths.
  [[nodiscard]] const double* chi(int context) const { return &chi_[static_cast<std::size_t>(context) * size_]; }
  /// Writes Z, K x stride.
  void coordinates(int context, double* out) const;

 private:
  void draw_lengths(int group, std::size_t coordinate, double multiplicity);
  void draw_coordinates(int context, double* out) const;

  std::uint64_t seed_;
  int contexts_;
  std::size_t size_, stride_;  ///< K, padded(L)
  std::vector<double> chi_;
  AlignedArray<double> kept_;  ///< every Z; empty when they are too many to keep
};

}  // namespace iclflow
