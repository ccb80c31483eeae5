#include "correlation_kernels.hpp"

#include <algorithm>
#include <limits>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spectral/correlation_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<double, row_padding>;
using V = hn::Vec<Tag>;

/// Highway's functions are for arguments without overflow: beyond, and for what is not a number, x * infinity.
template <typename Function>
HWY_INLINE V within_range(const Function& function, V x) {
  const Tag d;
  const V edge = hn::Set(d, 708.0);
  const V inside = hn::Min(x, edge);
  const V overflow = hn::Mul(x, hn::Set(d, std::numeric_limits<double>::infinity()));
  return hn::IfThenElse(hn::Le(x, edge), function(inside), overflow);
}

HWY_INLINE V exponential(V x) {
  return within_range([](V inside) HWY_ATTR { return hn::Exp(Tag(), inside); }, x);
}

/// row * factor, padded with zeros.
HWY_INLINE void pack(const double* row, std::size_t count, const double* factor, double* out) {
  const Tag d;
  std::size_t j = 0;
  for (; j + hn::Lanes(d) <= count; j += hn::Lanes(d)) {
    hn::Store(hn::Mul(hn::LoadU(d, row + j), hn::LoadU(d, factor + j)), d, out + j);
  }
  for (; j < count; ++j) out[j] = row[j] * factor[j];
  std::fill(out + count, out + padded(count), 0.0);
}

/// Every entry of `values` repeated over its block. Stores whole vectors: what spills over is written again by the
/// next block, and behind the last one lies padding that is multiplied by zeros.
HWY_INLINE void repeat_over_blocks(const double* values, const CorrelationShape& shape, double* out) {
  const Tag d;
  if (shape.tasks == shape.coordinates) {
    for (std::size_t i = 0; i < shape.tasks; i += hn::Lanes(d)) {
      const std::size_t count = std::min(shape.tasks - i, hn::Lanes(d));
      if (count == hn::Lanes(d)) {
        hn::Store(hn::LoadU(d, values + i), d, out + i);
      } else {
        for (std::size_t j = i; j < i + count; ++j) out[j] = values[j];
      }
    }
    return;
  }
  for (std::size_t i = 0; i < shape.tasks; ++i) {
    const V value = hn::Set(d, values[i]);
    for (std::size_t k = shape.block_begin[i]; k < shape.block_begin[i + 1]; k += hn::Lanes(d)) {
      hn::StoreU(value, d, out + k);
    }
  }
}

HWY_INLINE double sum(V v) { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }

/// out = the sums of the lanes of eight vectors, by additions of halves.
HWY_INLINE void store_sums(V s0, V s1, V s2, V s3, V s4, V s5, V s6, V s7, double* out) {
  const Tag d;
  constexpr std::size_t lanes = hn::MaxLanes(Tag());
  const auto neighbours = [d](V a, V b)
                              HWY_ATTR { return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)); };
  const auto halves = [d](V a, V b)
                          HWY_ATTR { return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a)); };
  if constexpr (lanes == 2) {
    hn::Store(neighbours(s0, s1), d, out);
    hn::Store(neighbours(s2, s3), d, out + 2);
    hn::Store(neighbours(s4, s5), d, out + 4);
    hn::Store(neighbours(s6, s7), d, out + 6);
  } else if constexpr (lanes == 4) {
    hn::Store(halves(neighbours(s0, s1), neighbours(s2, s3)), d, out);
    hn::Store(halves(neighbours(s4, s5), neighbours(s6, s7)), d, out + 4);
  } else if constexpr (lanes == 8) {
    const V even = halves(neighbours(s0, s1), neighbours(s4, s5));
    const V odd = halves(neighbours(s2, s3), neighbours(s6, s7));
    hn::Store(hn::OddEvenBlocks(hn::Add(odd, hn::SwapAdjacentBlocks(odd)), hn::Add(even, hn::SwapAdjacentBlocks(even))),
              d, out);
  } else {
    const double sums[8] = {sum(s0), sum(s1), sum(s2), sum(s3), sum(s4), sum(s5), sum(s6), sum(s7)};
    std::copy(sums, sums + 8, out);
  }
}

/// out = rows rows^T for `heads` rows, which are followed by rows of zeros up to a multiple of 8.
HWY_INLINE void gram(const double* rows, std::size_t heads, std::size_t stride, double* out) {
  const Tag d;
  const std::size_t width = padded(heads);
  for (std::size_t h = 0; h < heads; ++h) {
    const double* a = rows + h * stride;
    for (std::size_t g = 0; g < width; g += 8) {
      const double* b = rows + g * stride;
      V s0 = hn::Zero(d);
      V s1 = s0;
      V s2 = s0;
      V s3 = s0;
      V s4 = s0;
      V s5 = s0;
      V s6 = s0;
      V s7 = s0;
      for (std::size_t k = 0; k < stride; k += hn::Lanes(d)) {
        const V x = hn::Load(d, a + k);
        s0 = hn::MulAdd(x, hn::Load(d, b + k), s0);
        s1 = hn::MulAdd(x, hn::Load(d, b + stride + k), s1);
        s2 = hn::MulAdd(x, hn::Load(d, b + 2 * stride + k), s2);
        s3 = hn::MulAdd(x, hn::Load(d, b + 3 * stride + k), s3);
        s4 = hn::MulAdd(x, hn::Load(d, b + 4 * stride + k), s4);
        s5 = hn::MulAdd(x, hn::Load(d, b + 5 * stride + k), s5);
        s6 = hn::MulAdd(x, hn::Load(d, b + 6 * stride + k), s6);
        s7 = hn::MulAdd(x, hn::Load(d, b + 7 * stride + k), s7);
      }
      store_sums(s0, s1, s2, s3, s4, s5, s6, s7, out + h * width + g);
    }
  }
}

/// finish(row, column, (matrix rows)[row][column ..]) over all vectors of the product, four rows at a time; those
/// beyond `heads` mean nothing.
template <typename Finish>
HWY_INLINE void multiply(const double* matrix, const double* rows, std::size_t heads, std::size_t stride,
                         const Finish& finish) {
  const Tag d;
  const std::size_t width = padded(heads);
  for (std::size_t k = 0; k < stride; k += hn::Lanes(d)) {
    for (std::size_t h = 0; h < heads; h += 4) {
      const double* m = matrix + h * width;
      V s0 = hn::Zero(d);
      V s1 = s0;
      V s2 = s0;
      V s3 = s0;
      for (std::size_t g = 0; g < heads; ++g) {
        const V x = hn::Load(d, rows + g * stride + k);
        s0 = hn::MulAdd(hn::Set(d, m[g]), x, s0);
        s1 = hn::MulAdd(hn::Set(d, m[width + g]), x, s1);
        s2 = hn::MulAdd(hn::Set(d, m[2 * width + g]), x, s2);
        s3 = hn::MulAdd(hn::Set(d, m[3 * width + g]), x, s3);
      }
      finish(h, k, s0);
      finish(h + 1, k, s1);
      finish(h + 2, k, s2);
      finish(h + 3, k, s3);
    }
  }
}

/// out_i = sum over k in J_i of weight_k row_k.
HWY_INLINE void block_sums(const double* weight, const double* row, const CorrelationShape& shape, double* out) {
  const Tag d;
  if (shape.tasks == shape.coordinates) {
    for (std::size_t i = 0; i < shape.tasks; i += hn::Lanes(d)) {
      hn::Store(hn::Mul(hn::Load(d, weight + i), hn::Load(d, row + i)), d, out + i);
    }
    return;
  }
  const auto total = [&](std::size_t i) HWY_ATTR {
    V products = hn::Zero(d);
    std::size_t k = shape.block_begin[i];
    const std::size_t end = shape.block_begin[i + 1];
    for (; k + hn::Lanes(d) <= end; k += hn::Lanes(d)) {
      products = hn::MulAdd(hn::LoadU(d, weight + k), hn::LoadU(d, row + k), products);
    }
    if (k == end) return products;
    const V tail = hn::Mul(hn::LoadU(d, weight + k), hn::LoadU(d, row + k));
    return hn::Add(products, hn::IfThenElseZero(hn::FirstN(d, end - k), tail));
  };
  std::size_t i = 0;
  for (; i + 8 <= shape.tasks; i += 8) {
    store_sums(total(i), total(i + 1), total(i + 2), total(i + 3), total(i + 4), total(i + 5), total(i + 6),
               total(i + 7), out + i);
  }
  for (; i < shape.tasks; ++i) out[i] = sum(total(i));
}

/// Stores the first entries of a vector of a row of `count` numbers that has no padding.
HWY_INLINE void store_in_row(V v, std::size_t column, std::size_t count, double* row) {
  const Tag d;
  if (column + hn::Lanes(d) <= count) {
    hn::StoreU(v, d, row + column);
    return;
  }
  HWY_ALIGN double lanes[row_padding];
  hn::Store(v, d, lanes);
  for (std::size_t j = column; j < count; ++j) row[j] = lanes[j - column];
}

void gradient(const CorrelationShape& shape, const double* state, double* scratch, double* result) {
  const Tag d;
  const std::size_t heads = shape.heads;
  const std::size_t rows = padded(heads);
  const std::size_t task_stride = padded(shape.tasks);
  const std::size_t stride = padded(shape.coordinates);
  double* mu = scratch;                                            // sqrt(P_i phi_i / L) mu_hi
  double* mu_of_coordinate = mu + rows * task_stride;              // mu_hi, i the task of k
  double* omega = mu_of_coordinate + rows * stride + row_padding;  // sqrt(w_k) omega_hk
  double* overlap = omega + rows * stride + row_padding;           // sum_k w_k omega_hk omega_h'k
  double* correlation = overlap + rows * rows;                     // E
  double* attraction = correlation + rows * rows;                  // E_hh' sum_i (P_i phi_i / L) mu_hi mu_h'i
  double* pull = attraction + rows * rows;                         // (P_i / d_i) sqrt(w_k) r_k
  double* bias = pull + stride + row_padding;                      // sum over a block of (P_i / d_i) w_k omega_hk r_k
  std::fill(mu + heads * task_stride, mu + rows * task_stride, 0.0);
  std::fill(omega + heads * stride, omega + rows * stride, 0.0);
  for (std::size_t h = 0; h < heads; ++h) {
    const double* own = state + h * shape.tasks;
    pack(own, shape.tasks, shape.root_noise_weight, mu + h * task_stride);
    repeat_over_blocks(own, shape, mu_of_coordinate + h * stride);
    pack(state + heads * shape.tasks + h * shape.coordinates, shape.coordinates, shape.root_multiplicity,
         omega + h * stride);
  }
  for (std::size_t k = 0; k < stride; k += hn::Lanes(d)) {
    V attended = hn::Zero(d);
    for (std::size_t h = 0; h < heads; ++h) {
      attended =
          hn::MulAdd(hn::Load(d, mu_of_coordinate + h * stride + k), hn::Load(d, omega + h * stride + k), attended);
    }
    // r_k = 1 - sum_h mu_hi omega_hk
    const V residual = hn::NegMulAdd(attended, hn::LoadU(d, shape.inverse_root_multiplicity + k), hn::Set(d, 1.0));
    hn::Store(hn::Mul(residual, hn::LoadU(d, shape.bias_weight + k)), d, pull + k);
  }
  gram(omega, heads, stride, overlap);
  gram(mu, heads, task_stride, attraction);
  // E_hh' = exp(sum_k w_k omega_hk omega_h'k)
  for (std::size_t j = 0; j < heads * rows; j += hn::Lanes(d)) {
    const V e = exponential(hn::Load(d, overlap + j));
    hn::Store(e, d, correlation + j);
    hn::Store(hn::Mul(e, hn::Load(d, attraction + j)), d, attraction + j);
  }
  for (std::size_t h = 0; h < heads; ++h) block_sums(pull, omega + h * stride, shape, bias + h * task_stride);
  multiply(correlation, mu, heads, task_stride, [&](std::size_t h, std::size_t i, V noise) HWY_ATTR {
    if (h >= heads) return;
    const V slope =
        hn::MulSub(noise, hn::LoadU(d, shape.root_noise_weight + i), hn::Load(d, bias + h * task_stride + i));
    store_in_row(slope, i, shape.tasks, result + h * shape.tasks);
  });
  double* omega_result = result + heads * shape.tasks;
  multiply(attraction, omega, heads, stride, [&](std::size_t h, std::size_t k, V noise) HWY_ATTR {
    if (h >= heads) return;
    const V slope = hn::NegMulAdd(hn::Load(d, pull + k), hn::Load(d, mu_of_coordinate + h * stride + k), noise);
    store_in_row(hn::Mul(slope, hn::LoadU(d, shape.root_multiplicity + k)), k, shape.coordinates,
                 omega_result + h * shape.coordinates);
  });
}

/// out_j = f(in_j, factor_j) over unpadded arrays.
template <typename Function>
HWY_INLINE void map(const double* in, const double* factor, std::size_t count, double* out, const Function& f) {
  const Tag d;
  std::size_t j = 0;
  for (; j + hn::Lanes(d) <= count; j += hn::Lanes(d)) {
    hn::StoreU(f(hn::LoadU(d, in + j), hn::LoadU(d, factor + j)), d, out + j);
  }
  HWY_ALIGN double tail[2][row_padding] = {};
  for (std::size_t rest = j; rest < count; ++rest) {
    tail[0][rest - j] = in[rest];
    tail[1][rest - j] = factor[rest];
  }
  if (j < count) store_in_row(f(hn::Load(d, tail[0]), hn::Load(d, tail[1])), j, count, out);
}

void exponentials(const double* y, const double* factor, std::size_t count, double* x) {
  map(y, factor, count, x, [](V v, V f) HWY_ATTR { return hn::Mul(f, exponential(v)); });
}

void double_sinh(const double* y, const double* factor, std::size_t count, double* x) {
  map(y, factor, count, x, [](V v, V f) HWY_ATTR {
    const V twice = hn::Add(v, v);
    const V magnitude = within_range([](V inside) HWY_ATTR { return hn::Sinh(Tag(), inside); }, hn::Abs(twice));
    return hn::Mul(f, hn::CopySign(magnitude, twice));
  });
}

void minus_product(const double* factor, std::size_t count, double* x) {
  map(x, factor, count, x, [](V v, V f) HWY_ATTR { return hn::Neg(hn::Mul(f, v)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(gradient);
HWY_EXPORT(exponentials);
HWY_EXPORT(double_sinh);
HWY_EXPORT(minus_product);

std::size_t correlation_scratch_size(const CorrelationShape& shape) {
  const std::size_t rows = padded(shape.heads);
  const std::size_t task_stride = padded(shape.tasks);
  const std::size_t stride = padded(shape.coordinates) + row_padding;
  return rows * (2 * task_stride + 2 * stride + 3 * rows) + stride + row_padding;
}

void large_context_gradient(const CorrelationShape& shape, const double* state, double* scratch, double* result) {
  HWY_DYNAMIC_DISPATCH(gradient)(shape, state, scratch, result);
}

void scaled_exponentials(const double* y, const double* factor, std::size_t count, double* x) {
  HWY_DYNAMIC_DISPATCH(exponentials)(y, factor, count, x);
}

void scaled_double_sinh(const double* y, const double* factor, std::size_t count, double* x) {
  HWY_DYNAMIC_DISPATCH(double_sinh)(y, factor, count, x);
}

void multiply_by_minus(const double* factor, std::size_t count, double* x) {
  HWY_DYNAMIC_DISPATCH(minus_product)(factor, count, x);
}

}  // namespace iclflow
#endif  // HWY_ONCE
