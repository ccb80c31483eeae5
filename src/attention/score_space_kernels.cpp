#include "iclflow/attention/score_space_kernels.hpp"

#include <algorithm>
#include <limits>
#include <utility>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/score_space_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t group = contexts_per_group;

template <typename T>
using Tag = hn::CappedTag<T, contexts_per_group>;
template <typename T>
using V = hn::Vec<Tag<T>>;

template <typename T>
HWY_INLINE V<T> load(const T* array, std::size_t entry) {
  return hn::Load(Tag<T>(), array + entry * group);
}
template <typename T>
HWY_INLINE void store(V<T> value, T* array, std::size_t entry) {
  hn::Store(value, Tag<T>(), array + entry * group);
}

/// Vectors next to each other in a register tile of a matrix product, and rows of it.
template <typename T>
constexpr std::size_t tile_vectors = hn::MaxLanes(Tag<T>()) * 2 <= group ? 2 : 1;
template <typename T>
constexpr std::size_t tile_rows = hn::MaxLanes(Tag<T>()) * sizeof(T) >= 64 ? 8 : 4;

/// Calls pass<n>(first) for tiles of n = 4 and a rest of 1..3.
template <typename Pass>
HWY_INLINE void by_fours(std::size_t begin, std::size_t end, const Pass& pass) {
  std::size_t at = begin;
  for (; at + 4 <= end; at += 4) pass.template operator()<4>(at);
  if (end - at == 3) pass.template operator()<3>(at);
  if (end - at == 2) pass.template operator()<2>(at);
  if (end - at == 1) pass.template operator()<1>(at);
}

/// out[row] = sum_j matrix[row, j] q_j for `rows` rows of weights and a part of the contexts.
template <std::size_t rows, typename T>
HWY_INLINE void directions_of(const T* matrix, std::size_t dimension, const T* query, T* out) {
  const Tag<T> d;
  constexpr std::size_t vectors = tile_vectors<T>;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t lane = 0; lane < group; lane += vectors * lanes) {
    V<T> sum[rows][vectors];
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::Zero(d);
    }
    for (std::size_t j = 0; j < dimension; ++j) {
      V<T> q[vectors];
      for (std::size_t v = 0; v < vectors; ++v) q[v] = hn::Load(d, query + j * group + lane + v * lanes);
      for (std::size_t r = 0; r < rows; ++r) {
        const V<T> weight = hn::Set(d, matrix[r * dimension + j]);
        for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(weight, q[v], sum[r][v]);
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[r][v], d, out + r * group + lane + v * lanes);
    }
  }
}

/// V = W q, all heads.
template <typename T>
HWY_NOINLINE void directions(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s) {
  const std::size_t rows = w.heads * w.dimension;
  std::size_t row = 0;
  for (; row + tile_rows<T> <= rows; row += tile_rows<T>) {
    directions_of<tile_rows<T>>(&w.key_query[row * w.dimension], w.dimension, s.normals.get(),
                                &s.directions[row * group]);
  }
  for (; row < rows; ++row) {
    directions_of<1>(&w.key_query[row * w.dimension], w.dimension, s.normals.get(), &s.directions[row * group]);
  }
}

/// sums[row, c] += sum_n slope[row, n] query_rows[n, c] for `rows` rows and `vectors` vectors of columns.
template <std::size_t rows, std::size_t vectors, typename T>
HWY_INLINE void outer_of(const T* slope, const T* query_rows, std::size_t width, T* sums) {
  const Tag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  V<T> sum[rows][vectors];
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::Load(d, sums + r * width + v * lanes);
  }
  for (std::size_t n = 0; n < group; ++n) {
    V<T> q[vectors];
    for (std::size_t v = 0; v < vectors; ++v) q[v] = hn::Load(d, query_rows + n * width + v * lanes);
    for (std::size_t r = 0; r < rows; ++r) {
      const V<T> factor = hn::Set(d, slope[r * group + n]);
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(factor, q[v], sum[r][v]);
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(sum[r][v], d, sums + r * width + v * lanes);
  }
}

template <std::size_t rows, typename T>
HWY_INLINE void outer_rows(const T* slope, const T* query_rows, std::size_t width, T* sums) {
  const std::size_t lanes = hn::Lanes(Tag<T>());
  std::size_t c = 0;
  for (; c + 4 * lanes <= width; c += 4 * lanes) outer_of<rows, 4>(slope, query_rows + c, width, sums + c);
  for (; c < width; c += lanes) outer_of<rows, 1>(slope, query_rows + c, width, sums + c);
}

/// dW += Vbar q^T, the sum over the group's contexts.
template <typename T>
HWY_NOINLINE void add_outer_products(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, ScoreSpaceSums<T>& sums) {
  for (std::size_t j = 0; j < w.dimension; ++j) {
    for (std::size_t n = 0; n < group; ++n) s.query_rows[n * w.width + j] = s.normals[j * group + n];
  }
  const std::size_t rows = w.heads * w.dimension;
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    outer_rows<4>(&s.direction_slope[row * group], s.query_rows.get(), w.width, &sums.key_query[row * w.width]);
  }
  for (; row < rows; ++row) {
    outer_rows<1>(&s.direction_slope[row * group], s.query_rows.get(), w.width, &sums.key_query[row * w.width]);
  }
}

template <typename T>
HWY_INLINE V<T> inner(const T* a, const T* b, std::size_t size) {
  const Tag<T> d;
  V<T> even = hn::Zero(d);
  V<T> odd = hn::Zero(d);
  std::size_t j = 0;
  for (; j + 2 <= size; j += 2) {
    even = hn::MulAdd(load(a, j), load(b, j), even);
    odd = hn::MulAdd(load(a, j + 1), load(b, j + 1), odd);
  }
  if (j < size) even = hn::MulAdd(load(a, j), load(b, j), even);
  return hn::Add(even, odd);
}

/// Takes from x its parts along the first `count` columns of B (modified Gram-Schmidt).
template <typename T>
HWY_INLINE void remove_parts(const T* basis, std::size_t count, std::size_t size, T* x) {
  for (std::size_t k = 0; k < count; ++k) {
    const T* b = basis + k * size * group;
    const V<T> along = inner(b, x, size);
    for (std::size_t j = 0; j < size; ++j) store<T>(hn::NegMulAdd(along, load(b, j), load(x, j)), x, j);
  }
}

/// x / |x| where |x|^2 > least, else 0.
template <typename T>
HWY_INLINE void normalise(std::size_t size, V<T> least, T* x) {
  const Tag<T> d;
  const V<T> square = inner(x, x, size);
  const V<T> one = hn::Set(d, static_cast<T>(1));
  const auto kept = hn::Gt(square, least);
  const V<T> factor = hn::IfThenElseZero(kept, hn::Div(one, hn::Sqrt(hn::IfThenElse(kept, square, one))));
  for (std::size_t j = 0; j < size; ++j) store<T>(hn::Mul(factor, load(x, j)), x, j);
}

/// B and R with B R = V. A direction that lies in the span of those before it up to rounding gets a zero column: B
/// then has a smaller rank, which the formulas allow. What is left after one pass is orthogonal to about
/// rounding / tolerance; the second pass makes that rounding.
template <typename T>
HWY_NOINLINE void orthonormal_basis(const ScoreSpaceWeights<T>& w, const T* direction, T* basis, T* mixing) {
  const Tag<T> d;
  const std::size_t size = w.dimension;
  constexpr T tolerance = 128 * std::numeric_limits<T>::epsilon();
  for (std::size_t h = 0; h < w.rank; ++h) {
    T* b = basis + h * size * group;
    const T* v = direction + h * size * group;
    for (std::size_t j = 0; j < size; ++j) store<T>(load(v, j), b, j);
    const V<T> square = inner(v, v, size);
    remove_parts(basis, h, size, b);
    normalise<T>(size, hn::Mul(hn::Set(d, tolerance * tolerance), square), b);
    if (h > 0) {
      remove_parts(basis, h, size, b);
      normalise<T>(size, hn::Set(d, static_cast<T>(0.25)), b);
    }
  }
  for (std::size_t h = 0; h < w.heads; ++h) {
    for (std::size_t k = 0; k < w.rank; ++k) {
      const V<T> r = k <= h ? inner(basis + k * size * group, direction + h * size * group, size) : hn::Zero(d);
      store<T>(r, mixing, h * w.rank + k);
    }
  }
}

/// B = 1 where there are as many heads as dimensions.
template <typename T>
HWY_NOINLINE void whole_space(const ScoreSpaceWeights<T>& w, const T* direction, T* basis, T* mixing) {
  const Tag<T> d;
  for (std::size_t k = 0; k < w.rank; ++k) {
    for (std::size_t j = 0; j < w.dimension; ++j) {
      store<T>(hn::Set(d, static_cast<T>(j == k ? 1 : 0)), basis, k * w.dimension + j);
    }
    for (std::size_t h = 0; h < w.heads; ++h) store<T>(load(direction, h * w.dimension + k), mixing, h * w.rank + k);
  }
}

/// exp(s - max s) of the scores s = Z R of `heads` heads from `first` on; scale = 1 / sum exp.
template <std::size_t heads, typename T>
HWY_INLINE void attend(const ScoreSpaceWeights<T>& w, const T* coordinates, const T* mixing, std::size_t first,
                       T* attention, T* scale) {
  const Tag<T> d;
  V<T> top[heads];
  V<T> sum[heads];
  for (std::size_t h = 0; h < heads; ++h) top[h] = hn::Set(d, -std::numeric_limits<T>::max());
  for (std::size_t l = 0; l < w.length; ++l) {
    for (std::size_t h = 0; h < heads; ++h) sum[h] = hn::Zero(d);
    for (std::size_t k = 0; k < w.rank; ++k) {
      const V<T> z = load(coordinates, l * w.rank + k);
      for (std::size_t h = 0; h < heads; ++h) sum[h] = hn::MulAdd(z, load(mixing, (first + h) * w.rank + k), sum[h]);
    }
    for (std::size_t h = 0; h < heads; ++h) {
      store<T>(sum[h], attention, l * w.heads + first + h);
      top[h] = hn::Max(top[h], sum[h]);
    }
  }
  for (std::size_t h = 0; h < heads; ++h) sum[h] = hn::Zero(d);
  for (std::size_t l = 0; l < w.length; ++l) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t entry = l * w.heads + first + h;
      const V<T> e = hn::Exp(d, hn::Sub(load(attention, entry), top[h]));
      store<T>(e, attention, entry);
      sum[h] = hn::Add(sum[h], e);
    }
  }
  for (std::size_t h = 0; h < heads; ++h) store<T>(hn::Div(hn::Set(d, static_cast<T>(1)), sum[h]), scale, first + h);
}

/// out(a, b) = factor(b) sum_l weight_l x_la y_lb for a tile of `rows` x `columns`; weight null: 1.
/// x, y, weight advance by their steps from token to token.
template <std::size_t rows, std::size_t columns, bool weighted, typename T, typename Out>
HWY_INLINE void token_products(std::size_t length, const T* weight, std::size_t weight_step, const T* x,
                               std::size_t x_step, const T* y, std::size_t y_step, const Out& out) {
  const Tag<T> d;
  V<T> sum[rows][columns];
  for (std::size_t a = 0; a < rows; ++a) {
    for (std::size_t b = 0; b < columns; ++b) sum[a][b] = hn::Zero(d);
  }
  for (std::size_t l = 0; l < length; ++l) {
    V<T> right[columns];
    for (std::size_t b = 0; b < columns; ++b) right[b] = load(y, l * y_step + b);
    for (std::size_t a = 0; a < rows; ++a) {
      V<T> left = load(x, l * x_step + a);
      if constexpr (weighted) left = hn::Mul(left, load(weight, l * weight_step));
      for (std::size_t b = 0; b < columns; ++b) sum[a][b] = hn::MulAdd(left, right[b], sum[a][b]);
    }
  }
  for (std::size_t a = 0; a < rows; ++a) {
    for (std::size_t b = 0; b < columns; ++b) out(a, b, sum[a][b]);
  }
}

/// The moments of attention that the gradient is made of:
///   m = Z^T P,  C = P^T P,  S_h = Z^T diag(p^h) Z,  q_hg = Z^T (p^h * p^g)      theory: eq:score-space-moments
template <typename T>
HWY_NOINLINE void moments(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, std::size_t lane) {
  const T* z = &s.normals[w.dimension * group + lane];
  const T* e = &s.attention[lane];
  const T* scale = &s.scale[lane];
  const std::size_t rank = w.rank;
  const std::size_t heads = w.heads;
  by_fours(0, heads, [&]<std::size_t rows>(std::size_t h0) HWY_ATTR {
    by_fours(0, rank, [&]<std::size_t columns>(std::size_t k0) HWY_ATTR {
      token_products<rows, columns, false, T>(
          w.length, nullptr, 0, e + h0 * group, heads, z + k0 * group, rank,
          [&](std::size_t a, std::size_t b, V<T> sum)
              HWY_ATTR { store<T>(hn::Mul(sum, load(scale, h0 + a)), &s.pooled[lane], (h0 + a) * rank + k0 + b); });
    });
    by_fours(h0, heads, [&]<std::size_t columns>(std::size_t g0) HWY_ATTR {
      token_products<rows, columns, false, T>(w.length, nullptr, 0, e + h0 * group, heads, e + g0 * group, heads,
                                              [&](std::size_t a, std::size_t b, V<T> sum) HWY_ATTR {
                                                const V<T> c =
                                                    hn::Mul(sum, hn::Mul(load(scale, h0 + a), load(scale, g0 + b)));
                                                store<T>(c, &s.overlap[lane], (h0 + a) * heads + g0 + b);
                                                store<T>(c, &s.overlap[lane], (g0 + b) * heads + h0 + a);
                                              });
    });
  });
  for (std::size_t h = 0; h < heads; ++h) {
    by_fours(0, rank, [&]<std::size_t rows>(std::size_t k0) HWY_ATTR {
      by_fours(0, k0 + rows, [&]<std::size_t columns>(std::size_t j0) HWY_ATTR {
        token_products<rows, columns, true, T>(w.length, e + h * group, heads, z + k0 * group, rank, z + j0 * group,
                                               rank, [&](std::size_t a, std::size_t b, V<T> sum) HWY_ATTR {
                                                 const V<T> moment = hn::Mul(sum, load(scale, h));
                                                 store<T>(moment, &s.second[lane], (h * rank + k0 + a) * rank + j0 + b);
                                                 store<T>(moment, &s.second[lane], (h * rank + j0 + b) * rank + k0 + a);
                                               });
      });
      by_fours(h, heads, [&]<std::size_t columns>(std::size_t g0) HWY_ATTR {
        token_products<rows, columns, true, T>(
            w.length, e + h * group, heads, z + k0 * group, rank, e + g0 * group, heads,
            [&](std::size_t a, std::size_t b, V<T> sum) HWY_ATTR {
              const V<T> moment = hn::Mul(sum, hn::Mul(load(scale, h), load(scale, g0 + b)));
              store<T>(moment, &s.pair[lane], (h * heads + g0 + b) * rank + k0 + a);
              store<T>(moment, &s.pair[lane], ((g0 + b) * heads + h) * rank + k0 + a);
            });
      });
    });
  }
}

/// tau_k = |J_k| - |B_{J_k}|^2 and sum_k (sigma^2 + a_k tau_k) N_k.
template <typename T>
HWY_NOINLINE void left_over(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, std::size_t lane) {
  const Tag<T> d;
  for (std::size_t i = 0; i < w.tasks; ++i) {
    const std::size_t begin = w.block_begin[i];
    const std::size_t size = w.block_begin[i + 1] - begin;
    V<T> tau = hn::Set(d, static_cast<T>(size));
    for (std::size_t k = 0; k < w.rank; ++k) {
      const T* b = &s.basis[(k * w.dimension + begin) * group + lane];
      tau = hn::Sub(tau, inner(b, b, size));
    }
    store<T>(tau, &s.left_over[lane], i);
  }
  for (std::size_t entry = 0; entry < w.heads * w.heads; ++entry) {
    V<T> sum = hn::Set(d, w.noise[entry]);
    for (std::size_t i = 0; i < w.tasks; ++i) {
      sum = hn::MulAdd(load(&s.left_over[lane], i), hn::Set(d, w.shared[i * w.heads * w.heads + entry]), sum);
    }
    store<T>(sum, &s.overlap_slope[lane], entry);
  }
}

/// With z = B m: Gamma_{J_k} = a_k (z_{J_k} N_k - q_{J_k} u_kk^T), B^T Gamma, and the sums for U:
///   a_k (z^T z - V^T V)_{J_k} + (a_k tau_k + sigma^2) C,  a_k (z - V)_{J_k}^T q.
template <typename T>
HWY_NOINLINE void slopes(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, ScoreSpaceSums<T>& sums,
                         std::size_t lane) {
  const Tag<T> d;
  const std::size_t heads = w.heads;
  const V<T> present = hn::Load(d, &s.present[lane]);
  const T* q = &s.normals[lane];
  const T* v = &s.directions[lane];
  T* read = &s.direction_slope[lane];  // z; what it is for comes later
  T* slope = &s.slope[lane];
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t j = 0; j < w.dimension; ++j) {
      V<T> sum = hn::Zero(d);
      for (std::size_t k = 0; k < w.rank; ++k) {
        sum = hn::MulAdd(load(&s.basis[lane], k * w.dimension + j), load(&s.pooled[lane], h * w.rank + k), sum);
      }
      store<T>(sum, read, h * w.dimension + j);
    }
  }
  for (std::size_t i = 0; i < w.tasks; ++i) {
    const std::size_t begin = w.block_begin[i];
    const std::size_t size = w.block_begin[i + 1] - begin;
    const V<T> amplitude = hn::Set(d, w.amplitude[i]);
    const V<T> spread = hn::MulAdd(amplitude, load(&s.left_over[lane], i), hn::Set(d, w.noise_variance));
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = h * w.dimension + begin;
      for (std::size_t j = 0; j < size; ++j) {
        V<T> sum = hn::Mul(hn::Set(d, -w.own[i * heads + h]), load(q, begin + j));
        for (std::size_t g = 0; g < heads; ++g) {
          sum = hn::MulAdd(hn::Set(d, w.shared[(i * heads + g) * heads + h]),
                           load<T>(read, g * w.dimension + begin + j), sum);
        }
        store<T>(sum, slope, at + j);
      }
      const V<T> own = hn::NegMulAdd(hn::Set(d, w.linear[h]), inner<T>(v + at * group, q + begin * group, size),
                                     inner<T>(read + at * group, q + begin * group, size));
      T* own_sum = &sums.own[lane];
      store<T>(hn::MulAdd(present, hn::Mul(amplitude, own), load<T>(own_sum, i * heads + h)), own_sum, i * heads + h);
      for (std::size_t g = 0; g <= h; ++g) {
        const std::size_t other = g * w.dimension + begin;
        const V<T> power =
            hn::NegMulAdd(hn::Set(d, w.linear[h] * w.linear[g]), inner<T>(v + at * group, v + other * group, size),
                          inner<T>(read + at * group, read + other * group, size));
        const V<T> term = hn::MulAdd(spread, load(&s.overlap[lane], h * heads + g), hn::Mul(amplitude, power));
        T* overlap_sum = &sums.overlap[lane];
        const std::size_t entry = (i * heads + h) * heads + g;
        store<T>(hn::MulAdd(present, term, load<T>(overlap_sum, entry)), overlap_sum, entry);
      }
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t k = 0; k < w.rank; ++k) {
      store<T>(inner<T>(&s.basis[k * w.dimension * group + lane], slope + h * w.dimension * group, w.dimension),
               &s.slope_in_basis[lane], h * w.rank + k);
    }
  }
}

/// Z^T Sbar_h = S_h beta_h + sum_g q_hg n_gh - m_h { <m_h, beta_h> + (C n)_hh }, beta = B^T Gamma,
/// n = sum_k (sigma^2 + a_k tau_k) N_k; and cross_kh = sum_g q_hg (a_k N_k)_gh - m_h (C a_k N_k)_hh.
template <typename T>
HWY_NOINLINE void score_slopes(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, std::size_t lane) {
  const Tag<T> d;
  const std::size_t heads = w.heads;
  const std::size_t rank = w.rank;
  const T* m = &s.pooled[lane];
  const T* beta = &s.slope_in_basis[lane];
  for (std::size_t h = 0; h < heads; ++h) {
    V<T> mean = inner<T>(m + h * rank * group, beta + h * rank * group, rank);
    for (std::size_t g = 0; g < heads; ++g) {
      mean = hn::MulAdd(load(&s.overlap[lane], h * heads + g), load(&s.overlap_slope[lane], g * heads + h), mean);
    }
    for (std::size_t k = 0; k < rank; ++k) {
      V<T> sum =
          hn::NegMulAdd(mean, load(m, h * rank + k),
                        inner<T>(&s.second[(h * rank + k) * rank * group + lane], beta + h * rank * group, rank));
      for (std::size_t g = 0; g < heads; ++g) {
        sum = hn::MulAdd(load(&s.pair[lane], (h * heads + g) * rank + k), load(&s.overlap_slope[lane], g * heads + h),
                         sum);
      }
      store<T>(sum, &s.score_slope[lane], h * rank + k);
    }
    for (std::size_t i = 0; i < w.tasks; ++i) {
      const T* shared = &w.shared[i * heads * heads];
      V<T> own = hn::Zero(d);
      for (std::size_t g = 0; g < heads; ++g) {
        own = hn::MulAdd(load(&s.overlap[lane], h * heads + g), hn::Set(d, shared[g * heads + h]), own);
      }
      for (std::size_t k = 0; k < rank; ++k) {
        V<T> sum = hn::Mul(own, hn::Neg(load(m, h * rank + k)));
        for (std::size_t g = 0; g < heads; ++g) {
          sum = hn::MulAdd(load(&s.pair[lane], (h * heads + g) * rank + k), hn::Set(d, shared[g * heads + h]), sum);
        }
        store<T>(sum, &s.cross[lane], (i * heads + h) * rank + k);
      }
    }
  }
}

/// Vbar_h = B Z^T Sbar_h + Pi y_h,  y_{h, J_k} = (1 - C_hh) Gamma_{h, J_k} + B_{J_k} cross_kh, less the linear part
/// c_h Gamma0_{h, J_k}, Gamma0_{J_k} = a_k (c V_{J_k} N_k - q_{J_k} u_kk^T).
///                                                               theory: eq:score-space-gradient-w,
///                                                               eq:score-space-control
template <typename T>
HWY_NOINLINE void direction_slopes(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, std::size_t lane) {
  const Tag<T> d;
  const std::size_t heads = w.heads;
  const std::size_t rank = w.rank;
  const std::size_t size = w.dimension;
  const V<T> present = hn::Load(d, &s.present[lane]);
  const T* basis = &s.basis[lane];
  for (std::size_t h = 0; h < heads; ++h) {
    T* rest = &s.slope[h * size * group + lane];
    const V<T> kept = hn::Sub(hn::Set(d, static_cast<T>(1)), load(&s.overlap[lane], h * heads + h));
    for (std::size_t i = 0; i < w.tasks; ++i) {
      const T* cross = &s.cross[(i * heads + h) * rank * group + lane];
      for (std::size_t j = w.block_begin[i]; j < w.block_begin[i + 1]; ++j) {
        V<T> sum = hn::Mul(kept, load<T>(rest, j));
        for (std::size_t k = 0; k < rank; ++k) sum = hn::MulAdd(load(basis, k * size + j), load(cross, k), sum);
        store<T>(sum, rest, j);
      }
    }
    T* along = &s.score_slope[h * rank * group + lane];
    for (std::size_t k = 0; k < rank; ++k) {
      store<T>(hn::Sub(load<T>(along, k), inner<T>(basis + k * size * group, rest, size)), along, k);
    }
    T* out = &s.direction_slope[h * size * group + lane];
    for (std::size_t i = 0; i < w.tasks; ++i) {
      const V<T> own = hn::Set(d, w.linear[h] * w.own[i * heads + h]);
      for (std::size_t j = w.block_begin[i]; j < w.block_begin[i + 1]; ++j) {
        V<T> sum = hn::MulAdd(own, load(&s.normals[lane], j), load<T>(rest, j));
        for (std::size_t g = 0; g < heads; ++g) {
          sum = hn::NegMulAdd(hn::Set(d, w.linear[h] * w.linear[g] * w.shared[(i * heads + g) * heads + h]),
                              load(&s.directions[lane], g * size + j), sum);
        }
        for (std::size_t k = 0; k < rank; ++k) sum = hn::MulAdd(load(basis, k * size + j), load<T>(along, k), sum);
        store<T>(hn::Mul(present, sum), out, j);
      }
    }
  }
}

template <typename T>
void group_of(const ScoreSpaceWeights<T>& w, ScoreSpaceScratch<T>& s, ScoreSpaceSums<T>& sums) {
  directions(w, s);
  for (std::size_t lane = 0; lane < group; lane += hn::Lanes(Tag<T>())) {
    const T* direction = &s.directions[lane];
    if (w.rank == w.dimension) {
      whole_space(w, direction, &s.basis[lane], &s.mixing[lane]);
    } else {
      orthonormal_basis(w, direction, &s.basis[lane], &s.mixing[lane]);
    }
    by_fours(0, w.heads, [&]<std::size_t heads>(std::size_t h) HWY_ATTR {
      attend<heads>(w, &s.normals[w.dimension * group + lane], &s.mixing[lane], h, &s.attention[lane], &s.scale[lane]);
    });
    moments(w, s, lane);
    left_over(w, s, lane);
    slopes(w, s, sums, lane);
    score_slopes(w, s, lane);
    direction_slopes(w, s, lane);
  }
  add_outer_products(w, s, sums);
}

// Highway exports functions, not templates.
void group_single(const ScoreSpaceWeights<float>& w, ScoreSpaceScratch<float>& s, ScoreSpaceSums<float>& sums) {
  group_of(w, s, sums);
}
void group_double(const ScoreSpaceWeights<double>& w, ScoreSpaceScratch<double>& s, ScoreSpaceSums<double>& sums) {
  group_of(w, s, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(group_single);
HWY_EXPORT(group_double);

template <>
void score_space_group(const ScoreSpaceWeights<float>& weights, ScoreSpaceScratch<float>& scratch,
                       ScoreSpaceSums<float>& sums) {
  HWY_DYNAMIC_DISPATCH(group_single)(weights, scratch, sums);
}
template <>
void score_space_group(const ScoreSpaceWeights<double>& weights, ScoreSpaceScratch<double>& scratch,
                       ScoreSpaceSums<double>& sums) {
  HWY_DYNAMIC_DISPATCH(group_double)(weights, scratch, sums);
}

}  // namespace iclflow
#endif  // HWY_ONCE
