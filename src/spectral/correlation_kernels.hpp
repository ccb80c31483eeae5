#pragma once

#include <cstddef>

namespace iclflow {

/// Rows of the matrices in here are padded with zeros to a multiple of this many numbers (the widest vector, and the
/// tiles of heads); a buffer of rows is followed by as many more.
inline constexpr std::size_t row_padding = 8;
[[nodiscard]] constexpr std::size_t padded(std::size_t count) {
  return (count + row_padding - 1) / row_padding * row_padding;
}

/// Sizes and weights of a large-context loss; every array is padded with zeros. Coordinates of a task are neighbours.
struct CorrelationShape {
  std::size_t heads = 0;
  std::size_t tasks = 0;
  std::size_t coordinates = 0;
  const std::size_t* block_begin = nullptr;           ///< first coordinate of each task, and one entry more
  const double* root_noise_weight = nullptr;          ///< sqrt(P_i phi_i / L)
  const double* root_multiplicity = nullptr;          ///< sqrt(w_k)
  const double* inverse_root_multiplicity = nullptr;  ///< 1 / sqrt(w_k)
  const double* bias_weight = nullptr;                ///< (P_i / d_i) sqrt(w_k)
};

/// Numbers of scratch that large_context_gradient() needs, at an address that is a multiple of 64 bytes.
[[nodiscard]] std::size_t correlation_scratch_size(const CorrelationShape& shape);

/// Gradient of the large-context loss at flat (mu, omega), in the instruction set of the machine (theory:
/// eq:large-context-gradient). The scratch may hold anything.
void large_context_gradient(const CorrelationShape& shape, const double* state, double* scratch, double* gradient);

/// x_j = factor_j exp(y_j); infinite or not a number where std::exp is.
void scaled_exponentials(const double* y, const double* factor, std::size_t count, double* x);
/// x_j = factor_j sinh(2 y_j), likewise.
void scaled_double_sinh(const double* y, const double* factor, std::size_t count, double* x);
/// x_j = -factor_j x_j.
void multiply_by_minus(const double* factor, std::size_t count, double* x);

}  // namespace iclflow
