#include "iclflow/attention/kernels.hpp"

#include <algorithm>
#include <limits>
#include <new>

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

template <int heads, typename T>
HWY_INLINE void scores_of(const T* tokens, std::size_t stride, std::size_t rows, const T* direction,
                          std::size_t direction_stride, T* out) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
    V sum0 = hn::Zero(d);
    V sum1 = sum0;
    V sum2 = sum0;
    V sum3 = sum0;
    for (std::size_t row = 0; row < rows; ++row) {
      const V x = hn::Load(d, tokens + row * stride + l);
      sum0 = hn::MulAdd(x, hn::Set(d, direction[row]), sum0);
      if constexpr (heads > 1) sum1 = hn::MulAdd(x, hn::Set(d, direction[direction_stride + row]), sum1);
      if constexpr (heads > 2) sum2 = hn::MulAdd(x, hn::Set(d, direction[2 * direction_stride + row]), sum2);
      if constexpr (heads > 3) sum3 = hn::MulAdd(x, hn::Set(d, direction[3 * direction_stride + row]), sum3);
    }
    hn::Store(sum0, d, out + l);
    if constexpr (heads > 1) hn::Store(sum1, d, out + stride + l);
    if constexpr (heads > 2) hn::Store(sum2, d, out + 2 * stride + l);
    if constexpr (heads > 3) hn::Store(sum3, d, out + 3 * stride + l);
  }
}

template <int heads, typename T>
HWY_INLINE void pool_of(const T* tokens, std::size_t stride, std::size_t rows, const T* weight, T* out,
                        std::size_t out_stride) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t row = 0; row < rows; ++row) {
    const T* token = tokens + row * stride;
    V sum0 = hn::Zero(d);
    V sum1 = sum0;
    V sum2 = sum0;
    V sum3 = sum0;
    for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
      const V x = hn::Load(d, token + l);
      sum0 = hn::MulAdd(x, hn::Load(d, weight + l), sum0);
      if constexpr (heads > 1) sum1 = hn::MulAdd(x, hn::Load(d, weight + stride + l), sum1);
      if constexpr (heads > 2) sum2 = hn::MulAdd(x, hn::Load(d, weight + 2 * stride + l), sum2);
      if constexpr (heads > 3) sum3 = hn::MulAdd(x, hn::Load(d, weight + 3 * stride + l), sum3);
    }
    out[row] = hn::GetLane(hn::SumOfLanes(d, sum0));
    if constexpr (heads > 1) out[out_stride + row] = hn::GetLane(hn::SumOfLanes(d, sum1));
    if constexpr (heads > 2) out[2 * out_stride + row] = hn::GetLane(hn::SumOfLanes(d, sum2));
    if constexpr (heads > 3) out[3 * out_stride + row] = hn::GetLane(hn::SumOfLanes(d, sum3));
  }
}

/// Calls pass<n>(first head) for groups of four heads and the rest: a token is loaded once for up to four heads.
template <typename Pass>
HWY_INLINE void by_fours(std::size_t heads, const Pass& pass) {
  std::size_t h = 0;
  for (; h + 4 <= heads; h += 4) pass.template operator()<4>(h);
  switch (heads - h) {
    case 3:
      pass.template operator()<3>(h);
      break;
    case 2:
      pass.template operator()<2>(h);
      break;
    case 1:
      pass.template operator()<1>(h);
      break;
    default:
      break;
  }
}

template <typename T>
void scores_all(const T* tokens, std::size_t stride, std::size_t rows, const T* direction, std::size_t direction_stride,
                std::size_t heads, T* out) {
  by_fours(heads, [&]<int count>(std::size_t h) HWY_ATTR {
    scores_of<count>(tokens, stride, rows, direction + h * direction_stride, direction_stride, out + h * stride);
  });
}

template <typename T>
void pool_all(const T* tokens, std::size_t stride, std::size_t rows, const T* weight, std::size_t heads, T* out,
              std::size_t out_stride) {
  by_fours(heads, [&]<int count>(std::size_t h) HWY_ATTR {
    pool_of<count>(tokens, stride, rows, weight + h * stride, out + h * out_stride, out_stride);
  });
}

template <typename T>
void softmax_all(T* scores, std::size_t stride, std::size_t length, std::size_t heads) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t h = 0; h < heads; ++h) {
    T* s = scores + h * stride;
    std::fill(s + length, s + stride, -std::numeric_limits<T>::max());
    V largest = hn::Load(d, s);
    for (std::size_t l = hn::Lanes(d); l < stride; l += hn::Lanes(d)) largest = hn::Max(largest, hn::Load(d, s + l));
    const V top = hn::MaxOfLanes(d, largest);
    V sum = hn::Zero(d);
    for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
      const V e = hn::Exp(d, hn::Sub(hn::Load(d, s + l), top));
      hn::Store(e, d, s + l);
      sum = hn::Add(sum, e);
    }
    // The padding holds exp(-max) = 0, so the sum is over the context only.
    const V scale = hn::Div(hn::Set(d, static_cast<T>(1)), hn::SumOfLanes(d, sum));
    for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) hn::Store(hn::Mul(hn::Load(d, s + l), scale), d, s + l);
  }
}

template <typename T>
void softmax_backward_all(const T* p, T* dp, std::size_t stride, std::size_t heads) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t h = 0; h < heads; ++h) {
    const T* weight = p + h * stride;
    T* slope = dp + h * stride;
    V sum = hn::Zero(d);
    for (std::size_t l = 0; l < stride; l += hn::Lanes(d))
      sum = hn::MulAdd(hn::Load(d, weight + l), hn::Load(d, slope + l), sum);
    const V mean = hn::SumOfLanes(d, sum);
    for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
      hn::Store(hn::Mul(hn::Load(d, weight + l), hn::Sub(hn::Load(d, slope + l), mean)), d, slope + l);
    }
  }
}

template <typename T>
void matrix_vector_all(const T* matrix, std::size_t width, const T* vector, std::size_t rows, T* out) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  for (std::size_t c = 0; c < width; c += hn::Lanes(d)) {
    V sum = hn::Zero(d);
    for (std::size_t j = 0; j < rows; ++j)
      sum = hn::MulAdd(hn::Load(d, matrix + j * width + c), hn::Set(d, vector[j]), sum);
    hn::Store(sum, d, out + c);
  }
}

template <typename T>
void add_outer_all(T* matrix, std::size_t width, const T* left, std::size_t rows, const T* right) {
  const Tag<T> d;
  for (std::size_t j = 0; j < rows; ++j) {
    T* row = matrix + j * width;
    const hn::Vec<Tag<T>> factor = hn::Set(d, left[j]);
    for (std::size_t c = 0; c < width; c += hn::Lanes(d)) {
      hn::Store(hn::MulAdd(factor, hn::Load(d, right + c), hn::Load(d, row + c)), d, row + c);
    }
  }
}

template <typename T>
void add_scaled_all(const T* row, T factor, std::size_t stride, T* out) {
  const Tag<T> d;
  for (std::size_t l = 0; l < stride; l += hn::Lanes(d)) {
    hn::Store(hn::MulAdd(hn::Set(d, factor), hn::Load(d, row + l), hn::Load(d, out + l)), d, out + l);
  }
}

// Highway exports functions, not templates.
#define ICLFLOW_KERNELS(T, suffix)                                                                                 \
  void scores_##suffix(const T* a, std::size_t b, std::size_t c, const T* e, std::size_t f, std::size_t g, T* h) { \
    scores_all<T>(a, b, c, e, f, g, h);                                                                            \
  }                                                                                                                \
  void pool_##suffix(const T* a, std::size_t b, std::size_t c, const T* e, std::size_t f, T* g, std::size_t h) {   \
    pool_all<T>(a, b, c, e, f, g, h);                                                                              \
  }                                                                                                                \
  void softmax_##suffix(T* a, std::size_t b, std::size_t c, std::size_t e) { softmax_all<T>(a, b, c, e); }         \
  void softmax_backward_##suffix(const T* a, T* b, std::size_t c, std::size_t e) {                                 \
    softmax_backward_all<T>(a, b, c, e);                                                                           \
  }                                                                                                                \
  void matrix_vector_##suffix(const T* a, std::size_t b, const T* c, std::size_t e, T* f) {                        \
    matrix_vector_all<T>(a, b, c, e, f);                                                                           \
  }                                                                                                                \
  void add_outer_##suffix(T* a, std::size_t b, const T* c, std::size_t e, const T* f) {                            \
    add_outer_all<T>(a, b, c, e, f);                                                                               \
  }                                                                                                                \
  void add_scaled_##suffix(const T* a, T b, std::size_t c, T* e) { add_scaled_all<T>(a, b, c, e); }
ICLFLOW_KERNELS(float, single)
ICLFLOW_KERNELS(double, double)
#undef ICLFLOW_KERNELS

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

#define ICLFLOW_EXPORT(T, suffix)                                                                                 \
  HWY_EXPORT(scores_##suffix);                                                                                    \
  HWY_EXPORT(pool_##suffix);                                                                                      \
  HWY_EXPORT(softmax_##suffix);                                                                                   \
  HWY_EXPORT(softmax_backward_##suffix);                                                                          \
  HWY_EXPORT(matrix_vector_##suffix);                                                                             \
  HWY_EXPORT(add_outer_##suffix);                                                                                 \
  HWY_EXPORT(add_scaled_##suffix);                                                                                \
  template <>                                                                                                     \
  void scores<T>(const T* tokens, std::size_t stride, std::size_t rows, const T* direction,                       \
                 std::size_t direction_stride, std::size_t heads, T* out) {                                       \
    HWY_DYNAMIC_DISPATCH(scores_##suffix)(tokens, stride, rows, direction, direction_stride, heads, out);         \
  }                                                                                                               \
  template <>                                                                                                     \
  void pool<T>(const T* tokens, std::size_t stride, std::size_t rows, const T* weight, std::size_t heads, T* out, \
               std::size_t out_stride) {                                                                          \
    HWY_DYNAMIC_DISPATCH(pool_##suffix)(tokens, stride, rows, weight, heads, out, out_stride);                    \
  }                                                                                                               \
  template <>                                                                                                     \
  void softmax<T>(T * values, std::size_t stride, std::size_t length, std::size_t heads) {                        \
    HWY_DYNAMIC_DISPATCH(softmax_##suffix)(values, stride, length, heads);                                        \
  }                                                                                                               \
  template <>                                                                                                     \
  void softmax_backward<T>(const T* p, T* dp, std::size_t stride, std::size_t heads) {                            \
    HWY_DYNAMIC_DISPATCH(softmax_backward_##suffix)(p, dp, stride, heads);                                        \
  }                                                                                                               \
  template <>                                                                                                     \
  void matrix_vector<T>(const T* matrix, std::size_t width, const T* vector, std::size_t rows, T* out) {          \
    HWY_DYNAMIC_DISPATCH(matrix_vector_##suffix)(matrix, width, vector, rows, out);                               \
  }                                                                                                               \
  template <>                                                                                                     \
  void add_outer<T>(T * matrix, std::size_t width, const T* left, std::size_t rows, const T* right) {             \
    HWY_DYNAMIC_DISPATCH(add_outer_##suffix)(matrix, width, left, rows, right);                                   \
  }                                                                                                               \
  template <>                                                                                                     \
  void add_scaled<T>(const T* row, T factor, std::size_t stride, T* out) {                                        \
    HWY_DYNAMIC_DISPATCH(add_scaled_##suffix)(row, factor, stride, out);                                          \
  }                                                                                                               \
  template <>                                                                                                     \
  AlignedArray<T> aligned_zeros<T>(std::size_t count) {                                                           \
    AlignedArray<T> array = hwy::AllocateAligned<T>(count);                                                       \
    if (!array) throw std::bad_alloc();                                                                           \
    std::fill_n(array.get(), count, T{0});                                                                        \
    return array;                                                                                                 \
  }
ICLFLOW_EXPORT(float, single)
ICLFLOW_EXPORT(double, double)
#undef ICLFLOW_EXPORT

}  // namespace iclflow
#endif  // HWY_ONCE
