#include "iclflow/attention/kernels.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <type_traits>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most token_padding lanes, so that every stride is a whole number of vectors.
template <typename T>
using Tag = hn::CappedTag<T, token_padding>;

/// `vectors` vectors of tokens from l on: every token is loaded once for all heads, every direction once for all
/// vectors.
template <std::size_t heads, std::size_t vectors, typename T>
HWY_INLINE void scores_at(const T* tokens, std::size_t stride, std::size_t rows, const T* direction,
                          std::size_t direction_stride, T* out, std::size_t out_stride) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Tag<T>> sum[heads][vectors];
  for (auto& of_head : sum) {
    for (auto& v : of_head) v = hn::Zero(d);
  }
  for (std::size_t row = 0; row < rows; ++row) {
    hn::Vec<Tag<T>> x[vectors];
    for (std::size_t v = 0; v < vectors; ++v) x[v] = hn::LoadU(d, tokens + row * stride + v * lanes);
    for (std::size_t h = 0; h < heads; ++h) {
      const hn::Vec<Tag<T>> factor = hn::Set(d, direction[h * direction_stride + row]);
      for (std::size_t v = 0; v < vectors; ++v) sum[h][v] = hn::MulAdd(x[v], factor, sum[h][v]);
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    T* to = out + h * out_stride;
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[h][v], d, to + v * lanes);
  }
}

/// Sums over lanes of four vectors, side by side into out[0..4).
template <class D, class V = hn::Vec<D>, typename T = hn::TFromD<D>>
HWY_INLINE void store_lane_sums(D d, V v0, V v1, V v2, V v3, T* out) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    const hn::Half<D> half;
    const auto fold = [half](V v) HWY_ATTR { return hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)); };
    store_lane_sums(half, fold(v0), fold(v1), fold(v2), fold(v3), out);
  } else {
    const V v01 = hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1));
    const V v23 = hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3));
    if constexpr (sizeof(T) == 8) {
      hn::StoreU(v01, d, out);
      hn::StoreU(v23, d, out + 2);
    } else {
      hn::StoreU(hn::Add(hn::ConcatLowerLower(d, v23, v01), hn::ConcatUpperUpper(d, v23, v01)), d, out);
    }
  }
}

template <std::size_t heads, std::size_t rows, typename T>
HWY_INLINE void pool_rows(const T* tokens, std::size_t stride, std::size_t length, const T* weight,
                          std::size_t weight_stride, T* out, std::size_t out_stride) {
  const Tag<T> d;
  hn::Vec<Tag<T>> sum[heads][rows];
  for (auto& of_head : sum) {
    for (auto& v : of_head) v = hn::Zero(d);
  }
  for (std::size_t l = 0; l < length; l += hn::Lanes(d)) {
    hn::Vec<Tag<T>> x[rows];
    for (std::size_t r = 0; r < rows; ++r) x[r] = hn::LoadU(d, tokens + r * stride + l);
    for (std::size_t h = 0; h < heads; ++h) {
      const hn::Vec<Tag<T>> p = hn::Load(d, weight + h * weight_stride + l);
      for (std::size_t r = 0; r < rows; ++r) sum[h][r] = hn::MulAdd(x[r], p, sum[h][r]);
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    T* to = out + h * out_stride;
    if constexpr (rows == 4) {
      store_lane_sums(d, sum[h][0], sum[h][1], sum[h][2], sum[h][3], to);
    } else {
      for (std::size_t r = 0; r < rows; ++r) to[r] = hn::GetLane(hn::SumOfLanes(d, sum[h][r]));
    }
  }
}

/// Calls pass<n>(first) for groups of the sizes n given, largest first: what a group shares is loaded once for all of
/// it.
template <std::size_t largest, std::size_t... smaller, typename Pass>
HWY_INLINE void in_groups(std::size_t count, const Pass& pass, std::size_t first = 0) {
  for (; first + largest <= count; first += largest) pass.template operator()<largest>(first);
  if constexpr (sizeof...(smaller) > 0) in_groups<smaller...>(count, pass, first);
}

// Heads are the inner loop: the few tokens (scores) or rows (pool) at hand stay in the nearest cache for all of them.

template <typename T>
void scores_all(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* direction,
                std::size_t direction_stride, std::size_t heads, T* out, std::size_t out_stride) {
  const std::size_t lanes = hn::Lanes(Tag<T>());
  in_groups<2, 1>((length + lanes - 1) / lanes, [&]<std::size_t vectors>(std::size_t v) HWY_ATTR {
    in_groups<4, 3, 2, 1>(heads, [&]<std::size_t count>(std::size_t h) HWY_ATTR {
      scores_at<count, vectors>(tokens + v * lanes, stride, rows, direction + h * direction_stride, direction_stride,
                                out + h * out_stride + v * lanes, out_stride);
    });
  });
}

template <typename T>
void pool_all(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* weight,
              std::size_t weight_stride, std::size_t heads, T* out, std::size_t out_stride) {
  in_groups<4, 1>(rows, [&]<std::size_t together>(std::size_t row) HWY_ATTR {
    in_groups<4, 3, 2, 1>(heads, [&]<std::size_t count>(std::size_t h) HWY_ATTR {
      pool_rows<count, together>(tokens + row * stride, stride, length, weight + h * weight_stride, weight_stride,
                                 out + h * out_stride + row, out_stride);
    });
  });
}

/// A few heads side by side: their sums over lanes, which wait for one another, overlap.
template <std::size_t heads, typename T>
HWY_INLINE void softmax_of(T* scores, std::size_t stride, std::size_t length) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  V largest[heads], sum[heads];
  for (std::size_t h = 0; h < heads; ++h) {
    std::fill(scores + h * stride + length, scores + (h + 1) * stride, -std::numeric_limits<T>::max());
    largest[h] = hn::Load(d, scores + h * stride);
  }
  for (std::size_t l = hn::Lanes(d); l < length; l += hn::Lanes(d)) {
    for (std::size_t h = 0; h < heads; ++h) largest[h] = hn::Max(largest[h], hn::Load(d, scores + h * stride + l));
  }
  for (std::size_t h = 0; h < heads; ++h) {
    largest[h] = hn::MaxOfLanes(d, largest[h]);
    sum[h] = hn::Zero(d);
  }
  for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
    for (std::size_t h = 0; h < heads; ++h) {
      const V e = hn::Exp(d, hn::Sub(hn::Load(d, scores + h * stride + l), largest[h]));
      hn::Store(e, d, scores + h * stride + l);
      sum[h] = hn::Add(sum[h], e);
    }
  }
  // The padding holds exp(-max) = 0, so the sum is over the context only.
  for (std::size_t h = 0; h < heads; ++h) {
    sum[h] = hn::Div(hn::Set(d, static_cast<T>(1)), hn::SumOfLanes(d, sum[h]));
  }
  for (std::size_t l = 0; l < length; l += hn::Lanes(d)) {
    for (std::size_t h = 0; h < heads; ++h) {
      hn::Store(hn::Mul(hn::Load(d, scores + h * stride + l), sum[h]), d, scores + h * stride + l);
    }
  }
}

template <typename T>
void softmax_all(T* scores, std::size_t stride, std::size_t length, std::size_t heads) {
  in_groups<4, 3, 2, 1>(heads, [&]<std::size_t count>(std::size_t h)
                                   HWY_ATTR { softmax_of<count>(scores + h * stride, stride, length); });
}

template <typename T>
void softmax_backward_all(const T* p, T* dp, std::size_t stride, std::size_t length, std::size_t heads) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t h = 0; h < heads; ++h) {
    const T* weight = p + h * stride;
    T* slope = dp + h * stride;
    V sum = hn::Zero(d);
    for (std::size_t l = 0; l < length; l += hn::Lanes(d))
      sum = hn::MulAdd(hn::Load(d, weight + l), hn::Load(d, slope + l), sum);
    const V mean = hn::SumOfLanes(d, sum);
    for (std::size_t l = 0; l < length; l += hn::Lanes(d)) {
      hn::Store(hn::Mul(hn::Load(d, weight + l), hn::Sub(hn::Load(d, slope + l), mean)), d, slope + l);
    }
  }
}

/// One row of responses: the chain of dependent sums is short because four vectors go side by side.
template <typename T>
void responses_all(const T* tokens, std::size_t stride, std::size_t length, std::size_t rows, const T* weight,
                   const T* noise, T noise_deviation, T* out) {
  const Tag<T> d;
  constexpr std::size_t vectors = 4;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t l = 0; l < length; l += vectors * lanes) {
    const std::size_t now = std::min(vectors, (length - l + lanes - 1) / lanes);
    hn::Vec<Tag<T>> sum[vectors];
    const auto go = [&](auto count) HWY_ATTR {
      for (std::size_t v = 0; v < count; ++v) {
        sum[v] =
            noise == nullptr ? hn::Zero(d) : hn::Mul(hn::LoadU(d, noise + l + v * lanes), hn::Set(d, noise_deviation));
      }
      for (std::size_t row = 0; row < rows; ++row) {
        const hn::Vec<Tag<T>> factor = hn::Set(d, weight[row]);
        for (std::size_t v = 0; v < count; ++v) {
          sum[v] = hn::MulAdd(hn::LoadU(d, tokens + row * stride + l + v * lanes), factor, sum[v]);
        }
      }
      for (std::size_t v = 0; v < count; ++v) hn::StoreU(sum[v], d, out + l + v * lanes);
    };
    if (now == vectors) {
      go(std::integral_constant<std::size_t, vectors>());
    } else if (now == 3) {
      go(std::integral_constant<std::size_t, 3>());
    } else if (now == 2) {
      go(std::integral_constant<std::size_t, 2>());
    } else {
      go(std::integral_constant<std::size_t, 1>());
    }
  }
}

/// out[c, :] = sum_j vectors[c, j] matrix[j, :]: an entry of the matrix is loaded once for all contexts.
template <std::size_t count, std::size_t columns, typename T>
HWY_INLINE void products_at(const T* matrix, std::size_t width, std::size_t rows, const T* vectors,
                            std::size_t vector_stride, T* out, std::size_t out_stride) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Tag<T>> sum[count][columns];
  for (auto& of_context : sum) {
    for (auto& v : of_context) v = hn::Zero(d);
  }
  for (std::size_t j = 0; j < rows; ++j) {
    hn::Vec<Tag<T>> entry[columns];
    for (std::size_t k = 0; k < columns; ++k) entry[k] = hn::Load(d, matrix + j * width + k * lanes);
    for (std::size_t c = 0; c < count; ++c) {
      const hn::Vec<Tag<T>> factor = hn::Set(d, vectors[c * vector_stride + j]);
      for (std::size_t k = 0; k < columns; ++k) sum[c][k] = hn::MulAdd(entry[k], factor, sum[c][k]);
    }
  }
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t k = 0; k < columns; ++k) hn::Store(sum[c][k], d, out + c * out_stride + k * lanes);
  }
}

/// matrix[j, :] += sum_c left[c, j] right[c, :], in the order of the contexts, for a few rows j at once.
template <std::size_t count, std::size_t rows, typename T>
HWY_INLINE void add_products_at(T* matrix, std::size_t width, const T* left, std::size_t left_stride, const T* right,
                                std::size_t right_stride) {
  const Tag<T> d;
  hn::Vec<Tag<T>> factor[count][rows];
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t j = 0; j < rows; ++j) factor[c][j] = hn::Set(d, left[c * left_stride + j]);
  }
  for (std::size_t column = 0; column < width; column += hn::Lanes(d)) {
    hn::Vec<Tag<T>> sum[rows];
    for (std::size_t j = 0; j < rows; ++j) sum[j] = hn::Load(d, matrix + j * width + column);
    for (std::size_t c = 0; c < count; ++c) {
      const hn::Vec<Tag<T>> x = hn::Load(d, right + c * right_stride + column);
      for (std::size_t j = 0; j < rows; ++j) sum[j] = hn::MulAdd(x, factor[c][j], sum[j]);
    }
    for (std::size_t j = 0; j < rows; ++j) hn::Store(sum[j], d, matrix + j * width + column);
  }
}

template <typename T>
void products_all(const T* matrix, std::size_t width, std::size_t rows, const T* vectors, std::size_t vector_stride,
                  std::size_t count, T* out, std::size_t out_stride) {
  const std::size_t lanes = hn::Lanes(Tag<T>());
  in_groups<8, 4, 2, 1>(count, [&]<std::size_t now>(std::size_t c) HWY_ATTR {
    const T* of_group = vectors + c * vector_stride;
    T* to = out + c * out_stride;
    in_groups<2, 1>(width / lanes, [&]<std::size_t columns>(std::size_t k) HWY_ATTR {
      products_at<now, columns>(matrix + k * lanes, width, rows, of_group, vector_stride, to + k * lanes, out_stride);
    });
  });
}

template <typename T>
void add_products_all(T* matrix, std::size_t width, std::size_t rows, const T* left, std::size_t left_stride,
                      const T* right, std::size_t right_stride, std::size_t count) {
  in_groups<8, 4, 2, 1>(count, [&]<std::size_t now>(std::size_t c) HWY_ATTR {
    in_groups<2, 1>(rows, [&]<std::size_t together>(std::size_t j) HWY_ATTR {
      add_products_at<now, together>(matrix + j * width, width, left + c * left_stride + j, left_stride,
                                     right + c * right_stride, right_stride);
    });
  });
}

template <typename T>
void add_scaled_all(const T* row, T factor, std::size_t stride, T* out) {
  const Tag<T> d;
  for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
    hn::Store(hn::MulAdd(hn::Set(d, factor), hn::Load(d, row + l), hn::Load(d, out + l)), d, out + l);
  }
}

template <typename T>
constexpr Kernels<T> table = {scores_all<T>,    pool_all<T>,     softmax_all<T>,      softmax_backward_all<T>,
                              responses_all<T>, products_all<T>, add_products_all<T>, add_scaled_all<T>};

// Highway exports functions, not templates or tables.
const Kernels<float>* single_table() { return &table<float>; }
const Kernels<double>* double_table() { return &table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(single_table);
HWY_EXPORT(double_table);

template <>
const Kernels<float>& kernels<float>() {
  static const Kernels<float>& best = *HWY_DYNAMIC_DISPATCH(single_table)();
  return best;
}

template <>
const Kernels<double>& kernels<double>() {
  static const Kernels<double>& best = *HWY_DYNAMIC_DISPATCH(double_table)();
  return best;
}

template <typename T>
AlignedArray<T> aligned_zeros(std::size_t count) {
  AlignedArray<T> array = hwy::AllocateAligned<T>(count);
  if (!array) throw std::bad_alloc();
  std::fill_n(array.get(), count, T{0});
  return array;
}
template AlignedArray<float> aligned_zeros<float>(std::size_t);
template AlignedArray<double> aligned_zeros<double>(std::size_t);

}  // namespace iclflow
#endif  // HWY_ONCE
