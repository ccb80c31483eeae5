#pragma once

#include <cstddef>
#include <cstdint>

namespace iclflow {

/// Sequences that are worked on side by side: entry j of an array is sequences_per_group numbers, one per sequence.
/// Every product is then one multiply-add per vector, whatever the sizes, and no token of the causal half is wasted.
inline constexpr std::size_t sequences_per_group = 16;

/// A matrix of entries (or, for weights, of plain numbers): element (row, depth) stands at row * row_stride + depth *
/// depth_stride.
template <typename T>
struct Operand {
  const T* data;
  std::size_t row_stride;
  std::size_t depth_stride;
};
template <typename T>
struct Target {
  T* data;
  std::size_t row_stride;
  std::size_t column_stride;
};

/// Which part of a sum over tokens a row of tokens needs. Elements of the other triangle must be zero near the
/// diagonal.
enum class Reach : std::uint8_t { all, until_row, from_row };

struct Extent {
  std::size_t rows;
  std::size_t columns;
  std::size_t depth;
};

/// One head of a mesa layer, length tokens of k entries each.
template <typename T>
struct MesaHead {
  std::size_t length;
  std::size_t k;
  T inverse_lambda;
  std::size_t iterations;  ///< of conjugate gradients; 0: rank-one recursion
  const T* query;          ///< length x k
  const T* key;
  const T* value;
  const T* gamma;  ///< length, or nullptr: no forgetting
  T* solved;       ///< q*_t = (H_t + I / lambda)^-1 q_t, length x k
  T* matrices;     ///< scratch: 2 k k + 4 k entries; with forgetting 2 length k k more
};
template <typename T>
struct MesaSlopes {
  const T* output;  ///< d loss / d o_t, length x stride
  std::size_t stride;
  T* query;  ///< length x k each
  T* key;
  T* value;
  T* gamma;  ///< length, or nullptr
  T* rho;    ///< one entry, set
};

/// The loops of a stack for one group of sequences, dispatched to the processor's instruction set.
template <typename T>
struct StackKernels {
  /// out(row, column) (+)= sum_depth weights(row, depth) x(column, depth): weights are plain numbers, x are entries.
  void (*project)(Extent, Operand<T> weights, Operand<T> x, Target<T> out, bool add);
  /// out(row, column) = sum_depth a(row, depth) b(column, depth), all entries; causal: only columns <= row.
  void (*contract)(Extent, Operand<T> a, Operand<T> b, Target<T> out, Reach reach, bool causal);
  /// out(row, column) += sum over depth and sequences of a(row, depth) b(column, depth): out are plain numbers.
  void (*outer)(Extent, Operand<T> a, Operand<T> b, Target<T> out);
  /// a(t, t') = 0 for t' > t, of `length` x `length` entries.
  void (*causal)(T* scores, std::size_t length);
  /// Scores to attention, in place, and d loss / d attention to d loss / d score, in place.
  void (*softmax)(T* scores, std::size_t length, T scale);
  void (*softmax_backward)(const T* attention, T* slopes, std::size_t length, T scale);
  /// Clips `count` entries to [-limit, limit]; and lets slopes pass where the clipped value is inside.
  void (*clip)(T* values, std::size_t count, T limit);
  void (*clip_backward)(const T* values, T* slopes, std::size_t count, T limit);
  /// Rows of k entries divided by their lengths, which are kept; and d loss / d row in place.
  void (*normalise)(T* rows, std::size_t count, std::size_t k, T* inverse_lengths);
  void (*normalise_backward)(const T* rows, T* slopes, std::size_t count, std::size_t k, const T* inverse_lengths);
  /// gamma = 1 / (1 + exp(-x)), in place; d loss / d gamma to d loss / d x, in place.
  void (*sigmoid)(T* x, std::size_t count);
  void (*sigmoid_backward)(const T* gamma, T* slopes, std::size_t count);
  /// o_t = G_t q*_t, G_t = gamma_t G_{t-1} + v_t k_t^T; out(t, channel) at t * stride + channel.
  void (*mesa)(const MesaHead<T>& head, T* out, std::size_t stride);
  void (*mesa_backward)(const MesaHead<T>& head, const MesaSlopes<T>& slopes);
};

template <typename T>
[[nodiscard]] const StackKernels<T>& stack_kernels();

}  // namespace iclflow
