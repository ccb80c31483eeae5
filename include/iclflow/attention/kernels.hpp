#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>

namespace iclflow {

/// Multiple of the lanes of the widest vector (AVX-512, single precision): rows of arrays that the kernels write whole
/// vectors of are padded to it.
inline constexpr std::size_t token_padding = 16;

constexpr std::size_t padded(std::size_t count) { return (count + token_padding - 1) / token_padding * token_padding; }

template <typename T>
using AlignedArray = hwy::AlignedFreeUniquePtr<T[]>;

template <typename T>
[[nodiscard]] AlignedArray<T> aligned_zeros(std::size_t count);

/// The loops over tokens where a simulation spends its time, vectorised with Highway: one table per instruction set,
/// the best one chosen when the program runs.
///
/// Token arrays: entry (row, l) at row * stride + l, any stride >= length; loads of whole vectors run up to
/// token_padding - 1 entries past a row's end, which must be readable and finite. All other rows (scores, weights,
/// pooled tokens, matrices) start aligned: their strides are multiples of token_padding. Their entries past `length`
/// may be overwritten. Sums over tokens take attention weights past `length` as they are: softmax leaves zeros there.
template <typename T>
struct Kernels {
  /// out[h, l] = sum_row tokens[row, l] direction[h, row]
  void (*scores)(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* direction,
                 std::size_t direction_stride, std::size_t heads, T* out, std::size_t out_stride);
  /// out[h, row] = sum_l tokens[row, l] weight[h, l]
  void (*pool)(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* weight,
               std::size_t weight_stride, std::size_t heads, T* out, std::size_t out_stride);
  /// In place, every head: scores -> softmax over the first `length` tokens, zero from there to the stride.
  void (*softmax)(T* scores, std::size_t stride, std::size_t length, std::size_t heads);
  /// In place, every head: dp -> p * (dp - <p, dp>), the derivative with respect to the scores. Touches no entry but
  /// those of the vectors that hold the first `length`: what scores wrote.
  void (*softmax_backward)(const T* p, T* dp, std::size_t stride, std::size_t length, std::size_t heads);
  /// out[l] = sum_row weight[row] tokens[row, l] + noise_deviation * noise[l]; noise may be null, out need not be
  /// aligned: whole vectors are written.
  void (*responses)(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* weight,
                    const T* noise, T noise_deviation, T* out);
  /// out[c, :] = sum_j vectors[c, j] matrix[j, :] for c < count; matrix rows x width
  void (*products)(const T* matrix, std::size_t width, std::size_t rows, const T* vectors, std::size_t vector_stride,
                   std::size_t count, T* out, std::size_t out_stride);
  /// matrix[j, :] += sum_c left[c, j] right[c, :]
  void (*add_products)(T* matrix, std::size_t width, std::size_t rows, const T* left, std::size_t left_stride,
                       const T* right, std::size_t right_stride, std::size_t count);
  /// out[l] += factor * row[l] over one stride.
  void (*add_scaled)(const T* row, T factor, std::size_t stride, T* out);
};
template <typename T>
[[nodiscard]] const Kernels<T>& kernels();
template <>
const Kernels<float>& kernels<float>();
template <>
const Kernels<double>& kernels<double>();

// The same for arrays whose rows are all padded to one stride.

template <typename T>
void scores(const T* tokens, std::size_t stride, std::size_t rows, const T* direction, std::size_t direction_stride,
            std::size_t heads, T* out) {
  kernels<T>().scores(tokens, stride, stride, rows, direction, direction_stride, heads, out, stride);
}

template <typename T>
void pool(const T* tokens, std::size_t stride, std::size_t rows, const T* weight, std::size_t heads, T* out,
          std::size_t out_stride) {
  kernels<T>().pool(tokens, stride, stride, rows, weight, stride, heads, out, out_stride);
}

template <typename T>
void softmax(T* scores, std::size_t stride, std::size_t length, std::size_t heads) {
  kernels<T>().softmax(scores, stride, length, heads);
}

template <typename T>
void softmax_backward(const T* p, T* dp, std::size_t stride, std::size_t heads) {
  kernels<T>().softmax_backward(p, dp, stride, stride, heads);
}

template <typename T>
void add_scaled(const T* row, T factor, std::size_t stride, T* out) {
  kernels<T>().add_scaled(row, factor, stride, out);
}

}  // namespace iclflow
