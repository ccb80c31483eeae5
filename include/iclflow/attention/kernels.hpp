#pragma once

#include <hwy/aligned_allocator.h>

#include <cstddef>

namespace iclflow {

/// The loops over tokens where a simulation spends its time, vectorised with Highway and dispatched at run time.
///
/// Token arrays are rows x stride with the token index contiguous: entry (row, l) at row * stride + l. stride is a
/// multiple of token_padding; padded entries must be finite, their attention weights are zero.
inline constexpr std::size_t token_padding = 16;  ///< lanes of the widest vector (AVX-512, single precision)

constexpr std::size_t padded(std::size_t count) { return (count + token_padding - 1) / token_padding * token_padding; }

template <typename T>
using AlignedArray = hwy::AlignedFreeUniquePtr<T[]>;

template <typename T>
[[nodiscard]] AlignedArray<T> aligned_zeros(std::size_t count);

/// out[h, l] = sum_row tokens[row, l] * direction[h * direction_stride + row]
template <typename T>
void scores(const T* tokens, std::size_t stride, std::size_t rows, const T* direction, std::size_t direction_stride,
            std::size_t heads, T* out);

/// out[h * out_stride + row] = sum_l tokens[row, l] * weight[h, l]
template <typename T>
void pool(const T* tokens, std::size_t stride, std::size_t rows, const T* weight, std::size_t heads, T* out,
          std::size_t out_stride);

/// In place, every head: scores -> softmax over the first `length` tokens, zero on the padding.
template <typename T>
void softmax(T* scores, std::size_t stride, std::size_t length, std::size_t heads);

/// In place, every head: dp -> p * (dp - <p, dp>), the derivative with respect to the scores.
template <typename T>
void softmax_backward(const T* p, T* dp, std::size_t stride, std::size_t heads);

/// out[c] = sum_j vector[j] * matrix[j * width + c]; width a multiple of token_padding.
template <typename T>
void matrix_vector(const T* matrix, std::size_t width, const T* vector, std::size_t rows, T* out);

/// matrix[j * width + c] += left[j] * right[c]; width a multiple of token_padding.
template <typename T>
void add_outer(T* matrix, std::size_t width, const T* left, std::size_t rows, const T* right);

/// out[l] += factor * row[l] over one stride.
template <typename T>
void add_scaled(const T* row, T factor, std::size_t stride, T* out);

}  // namespace iclflow
