#include "stack_kernels.hpp"

#include <algorithm>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mesa/stack_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace stack {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t group = sequences_per_group;

template <typename T>
using Tag = hn::CappedTag<T, group>;
template <typename T>
using V = hn::Vec<Tag<T>>;

/// Rows and columns of a register tile: as many sums as there are registers for.
template <typename T>
constexpr std::size_t tile = hn::MaxLanes(Tag<T>()) * sizeof(T) >= 64 ? 5 : 3;

/// sum[r][c] += sum over depth of a(r, depth) b(c, depth) for one vector of sequences.
template <std::size_t rows, std::size_t columns, bool weights, typename T>
HWY_INLINE void add_tile(const Operand<T>& a, const T* a_at, const Operand<T>& b, const T* b_at, std::size_t begin,
                         std::size_t end, V<T> (&sum)[rows][columns]) {
  const Tag<T> d;
  const std::size_t a_step = a.depth_stride * (weights ? 1 : group);
  const std::size_t a_row = a.row_stride * (weights ? 1 : group);
  const std::size_t b_step = b.depth_stride * group;
  const std::size_t b_row = b.row_stride * group;
  a_at += begin * a_step;
  b_at += begin * b_step;
  for (std::size_t k = begin; k < end; ++k, a_at += a_step, b_at += b_step) {
    V<T> x[columns];
    for (std::size_t c = 0; c < columns; ++c) x[c] = hn::Load(d, b_at + c * b_row);
    for (std::size_t r = 0; r < rows; ++r) {
      V<T> w;
      if constexpr (weights) {
        w = hn::Set(d, a_at[r * a_row]);
      } else {
        w = hn::Load(d, a_at + r * a_row);
      }
      for (std::size_t c = 0; c < columns; ++c) sum[r][c] = hn::MulAdd(w, x[c], sum[r][c]);
    }
  }
}

template <std::size_t rows, std::size_t columns, typename T>
HWY_INLINE void clear(V<T> (&sum)[rows][columns]) {
  for (auto& row : sum) {
    for (auto& v : row) v = hn::Zero(Tag<T>());
  }
}

/// Calls pass<n>(first) for tiles of the full size and a rest one by one.
template <std::size_t full, typename Pass>
HWY_INLINE void by_tiles(std::size_t count, const Pass& pass) {
  std::size_t at = 0;
  for (; at + full <= count; at += full) pass.template operator()<full>(at);
  for (; at < count; ++at) pass.template operator()<1>(at);
}

template <typename T>
void project(Extent extent, Operand<T> weights, Operand<T> x, Target<T> out, bool add) {
  const Tag<T> d;
  by_tiles<tile<T>>(extent.columns, [&]<std::size_t columns>(std::size_t column) HWY_ATTR {
    by_tiles<tile<T>>(extent.rows, [&]<std::size_t rows>(std::size_t row) HWY_ATTR {
      for (std::size_t lane = 0; lane < group; lane += hn::Lanes(d)) {
        T* to = out.data + (row * out.row_stride + column * out.column_stride) * group + lane;
        V<T> sum[rows][columns];
        clear<rows, columns, T>(sum);
        if (add) {
          for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t c = 0; c < columns; ++c) {
              sum[r][c] = hn::Load(d, to + (r * out.row_stride + c * out.column_stride) * group);
            }
          }
        }
        add_tile<rows, columns, true, T>(weights, weights.data + row * weights.row_stride, x,
                                         x.data + column * x.row_stride * group + lane, 0, extent.depth, sum);
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < columns; ++c) {
            hn::Store(sum[r][c], d, to + (r * out.row_stride + c * out.column_stride) * group);
          }
        }
      }
    });
  });
}

template <typename T>
void contract(Extent extent, Operand<T> a, Operand<T> b, Target<T> out, Reach reach, bool causal) {
  const Tag<T> d;
  by_tiles<tile<T>>(extent.rows, [&]<std::size_t rows>(std::size_t row) HWY_ATTR {
    const std::size_t begin = reach == Reach::from_row ? row : 0;
    const std::size_t end = reach == Reach::until_row ? row + rows : extent.depth;
    by_tiles<tile<T>>(causal ? row + rows : extent.columns, [&]<std::size_t columns>(std::size_t column) HWY_ATTR {
      for (std::size_t lane = 0; lane < group; lane += hn::Lanes(d)) {
        V<T> sum[rows][columns];
        clear<rows, columns, T>(sum);
        add_tile<rows, columns, false, T>(a, a.data + row * a.row_stride * group + lane, b,
                                          b.data + column * b.row_stride * group + lane, begin, end, sum);
        T* to = out.data + (row * out.row_stride + column * out.column_stride) * group + lane;
        for (std::size_t r = 0; r < rows; ++r) {
          for (std::size_t c = 0; c < columns; ++c) {
            hn::Store(sum[r][c], d, to + (r * out.row_stride + c * out.column_stride) * group);
          }
        }
      }
    });
  });
}

template <typename T>
void outer(Extent extent, Operand<T> a, Operand<T> b, Target<T> out) {
  const Tag<T> d;
  by_tiles<tile<T>>(extent.rows, [&]<std::size_t rows>(std::size_t row) HWY_ATTR {
    by_tiles<tile<T>>(extent.columns, [&]<std::size_t columns>(std::size_t column) HWY_ATTR {
      V<T> sum[rows][columns];
      clear<rows, columns, T>(sum);
      for (std::size_t lane = 0; lane < group; lane += hn::Lanes(d)) {
        add_tile<rows, columns, false, T>(a, a.data + row * a.row_stride * group + lane, b,
                                          b.data + column * b.row_stride * group + lane, 0, extent.depth, sum);
      }
      T* to = out.data + row * out.row_stride + column * out.column_stride;
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          to[r * out.row_stride + c * out.column_stride] += hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
        }
      }
    });
  });
}

/// Calls pass(offset) for every vector of one entry's sequences.
template <typename T, typename Pass>
HWY_INLINE void over_lanes(const Pass& pass) {
  for (std::size_t lane = 0; lane < group; lane += hn::Lanes(Tag<T>())) pass(lane);
}
template <typename T, typename Pass>
HWY_INLINE void over_entries(std::size_t count, const Pass& pass) {
  for (std::size_t at = 0; at < count * group; at += hn::Lanes(Tag<T>())) pass(at);
}

template <typename T>
void causal(T* scores, std::size_t length) {
  for (std::size_t t = 0; t < length; ++t) {
    std::fill(scores + (t * length + t + 1) * group, scores + (t + 1) * length * group, T{0});
  }
}

/// exp(x); Highway's is 0 for what is not a number.
template <typename T>
HWY_INLINE V<T> exponential(V<T> x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(Tag<T>(), x));
}

template <typename T>
void softmax(T* scores, std::size_t length, T scale) {
  const Tag<T> d;
  const V<T> factor = hn::Set(d, scale);
  for (std::size_t t = 0; t < length; ++t) {
    over_lanes<T>([&](std::size_t lane) HWY_ATTR {
      T* row = scores + t * length * group + lane;
      V<T> largest = hn::Load(d, row);
      for (std::size_t s = 1; s <= t; ++s) largest = hn::Max(largest, hn::Load(d, row + s * group));
      V<T> sum = hn::Zero(d);
      for (std::size_t s = 0; s <= t; ++s) {
        const V<T> e = exponential<T>(hn::Mul(factor, hn::Sub(hn::Load(d, row + s * group), largest)));
        sum = hn::Add(sum, e);
        hn::Store(e, d, row + s * group);
      }
      const V<T> inverse = hn::Div(hn::Set(d, T{1}), sum);
      for (std::size_t s = 0; s <= t; ++s) {
        hn::Store(hn::Mul(inverse, hn::Load(d, row + s * group)), d, row + s * group);
      }
    });
  }
  causal(scores, length);
}

template <typename T>
void softmax_backward(const T* attention, T* slopes, std::size_t length, T scale) {
  const Tag<T> d;
  const V<T> factor = hn::Set(d, scale);
  for (std::size_t t = 0; t < length; ++t) {
    over_lanes<T>([&](std::size_t lane) HWY_ATTR {
      const T* p = attention + t * length * group + lane;
      T* g = slopes + t * length * group + lane;
      V<T> mean = hn::Zero(d);
      for (std::size_t s = 0; s <= t; ++s) {
        mean = hn::MulAdd(hn::Load(d, p + s * group), hn::Load(d, g + s * group), mean);
      }
      for (std::size_t s = 0; s <= t; ++s) {
        const V<T> centred = hn::Sub(hn::Load(d, g + s * group), mean);
        hn::Store(hn::Mul(hn::Mul(factor, hn::Load(d, p + s * group)), centred), d, g + s * group);
      }
    });
  }
  causal(slopes, length);
}

template <typename T>
void clip(T* values, std::size_t count, T limit) {
  const Tag<T> d;
  const V<T> high = hn::Set(d, limit);
  const V<T> low = hn::Neg(high);
  over_entries<T>(count, [&](std::size_t at) HWY_ATTR {
    const V<T> x = hn::Load(d, values + at);
    // What is not a number stays one: a failure must not look like a prediction.
    const V<T> clipped = hn::IfThenElse(hn::Gt(x, high), high, hn::IfThenElse(hn::Lt(x, low), low, x));
    hn::Store(clipped, d, values + at);
  });
}

template <typename T>
void clip_backward(const T* values, T* slopes, std::size_t count, T limit) {
  const Tag<T> d;
  const V<T> high = hn::Set(d, limit);
  over_entries<T>(count, [&](std::size_t at) HWY_ATTR {
    const auto outside = hn::Ge(hn::Abs(hn::Load(d, values + at)), high);
    hn::Store(hn::IfThenZeroElse(outside, hn::Load(d, slopes + at)), d, slopes + at);
  });
}

template <typename T>
void normalise(T* rows, std::size_t count, std::size_t k, T* inverse_lengths) {
  const Tag<T> d;
  for (std::size_t row = 0; row < count; ++row) {
    over_lanes<T>([&](std::size_t lane) HWY_ATTR {
      T* x = rows + row * k * group + lane;
      V<T> square = hn::Set(d, static_cast<T>(1e-24));  // a row of zeros stays one
      for (std::size_t i = 0; i < k; ++i) {
        const V<T> v = hn::Load(d, x + i * group);
        square = hn::MulAdd(v, v, square);
      }
      const V<T> inverse = hn::Div(hn::Set(d, T{1}), hn::Sqrt(square));
      hn::Store(inverse, d, inverse_lengths + row * group + lane);
      for (std::size_t i = 0; i < k; ++i) {
        hn::Store(hn::Mul(inverse, hn::Load(d, x + i * group)), d, x + i * group);
      }
    });
  }
}

template <typename T>
void normalise_backward(const T* rows, T* slopes, std::size_t count, std::size_t k, const T* inverse_lengths) {
  const Tag<T> d;
  for (std::size_t row = 0; row < count; ++row) {
    over_lanes<T>([&](std::size_t lane) HWY_ATTR {
      const T* x = rows + row * k * group + lane;
      T* g = slopes + row * k * group + lane;
      V<T> along = hn::Zero(d);
      for (std::size_t i = 0; i < k; ++i) {
        along = hn::MulAdd(hn::Load(d, x + i * group), hn::Load(d, g + i * group), along);
      }
      const V<T> inverse = hn::Load(d, inverse_lengths + row * group + lane);
      for (std::size_t i = 0; i < k; ++i) {
        const V<T> across = hn::NegMulAdd(along, hn::Load(d, x + i * group), hn::Load(d, g + i * group));
        hn::Store(hn::Mul(inverse, across), d, g + i * group);
      }
    });
  }
}

template <typename T>
void sigmoid(T* x, std::size_t count) {
  const Tag<T> d;
  const V<T> one = hn::Set(d, T{1});
  over_entries<T>(count, [&](std::size_t at) HWY_ATTR {
    const V<T> e = exponential<T>(hn::Neg(hn::Abs(hn::Load(d, x + at))));
    const V<T> small = hn::Div(e, hn::Add(one, e));  // of -|x|: never overflows
    const auto negative = hn::Lt(hn::Load(d, x + at), hn::Zero(d));
    hn::Store(hn::IfThenElse(negative, small, hn::Sub(one, small)), d, x + at);
  });
}

template <typename T>
void sigmoid_backward(const T* gamma, T* slopes, std::size_t count) {
  const Tag<T> d;
  const V<T> one = hn::Set(d, T{1});
  over_entries<T>(count, [&](std::size_t at) HWY_ATTR {
    const V<T> y = hn::Load(d, gamma + at);
    hn::Store(hn::Mul(hn::Load(d, slopes + at), hn::Mul(y, hn::Sub(one, y))), d, slopes + at);
  });
}

// The mesa layer: small matrices, one per sequence, in one vector of sequences at a time.

/// y = M x, or M^T x by exchanged strides (in entries).
template <typename T>
HWY_INLINE void multiply(const T* m, std::size_t row_stride, std::size_t depth_stride, const T* x, std::size_t k, T* y,
                         std::size_t y_stride = 1) {
  by_tiles<4>(k, [&]<std::size_t rows>(std::size_t row) HWY_ATTR {
    V<T> sum[rows][1];
    clear<rows, 1, T>(sum);
    add_tile<rows, 1, false, T>({m, row_stride, depth_stride}, m + row * row_stride * group, {x, 0, 1}, x, 0, k, sum);
    for (std::size_t r = 0; r < rows; ++r) hn::Store(sum[r][0], Tag<T>(), y + (row + r) * y_stride * group);
  });
}

/// M = decay M + factor x y^T.
template <typename T>
HWY_INLINE void add_product(T* m, V<T> decay, V<T> factor, const T* x, std::size_t x_stride, const T* y,
                            std::size_t k) {
  const Tag<T> d;
  for (std::size_t i = 0; i < k; ++i) {
    const V<T> left = hn::Mul(factor, hn::Load(d, x + i * x_stride * group));
    for (std::size_t j = 0; j < k; ++j) {
      T* at = m + (i * k + j) * group;
      hn::Store(hn::MulAdd(left, hn::Load(d, y + j * group), hn::Mul(decay, hn::Load(d, at))), d, at);
    }
  }
}

template <typename T>
HWY_INLINE V<T> dot(const T* x, const T* y, std::size_t count) {
  const Tag<T> d;
  V<T> even = hn::Zero(d);
  V<T> odd = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    even = hn::MulAdd(hn::Load(d, x + i * group), hn::Load(d, y + i * group), even);
    odd = hn::MulAdd(hn::Load(d, x + (i + 1) * group), hn::Load(d, y + (i + 1) * group), odd);
  }
  if (i < count) even = hn::MulAdd(hn::Load(d, x + i * group), hn::Load(d, y + i * group), even);
  return hn::Add(even, odd);
}

template <typename T>
HWY_INLINE void zero(T* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hn::Store(hn::Zero(Tag<T>()), Tag<T>(), x + i * group);
}

/// x = (H + I / lambda)^-1 b by conjugate gradients from zero; scratch: 3 k entries. A sequence that has converged
/// stays where it is: its step is 0 / tiny.
template <typename T>
HWY_INLINE void solve(const T* h, T inverse_lambda, const T* b, std::size_t k, std::size_t iterations, T* x,
                      T* scratch) {
  const Tag<T> d;
  const V<T> prior = hn::Set(d, inverse_lambda);
  const V<T> tiny = hn::Set(d, sizeof(T) == 4 ? static_cast<T>(1e-37) : static_cast<T>(1e-300));
  T* residual = scratch;
  T* direction = scratch + k * group;
  T* image = scratch + 2 * k * group;
  for (std::size_t i = 0; i < k; ++i) {
    hn::Store(hn::Zero(d), d, x + i * group);
    hn::Store(hn::Load(d, b + i * group), d, residual + i * group);
    hn::Store(hn::Load(d, b + i * group), d, direction + i * group);
  }
  V<T> square = dot(residual, residual, k);
  for (std::size_t n = 0; n < iterations; ++n) {
    multiply(h, k, 1, direction, k, image);
    for (std::size_t i = 0; i < k; ++i) {
      T* at = image + i * group;
      hn::Store(hn::MulAdd(prior, hn::Load(d, direction + i * group), hn::Load(d, at)), d, at);
    }
    const V<T> step = hn::Div(square, hn::Max(dot(direction, image, k), tiny));
    for (std::size_t i = 0; i < k; ++i) {
      T* r = residual + i * group;
      hn::Store(hn::MulAdd(step, hn::Load(d, direction + i * group), hn::Load(d, x + i * group)), d, x + i * group);
      hn::Store(hn::NegMulAdd(step, hn::Load(d, image + i * group), hn::Load(d, r)), d, r);
    }
    const V<T> next = dot(residual, residual, k);
    const V<T> turn = hn::Div(next, hn::Max(square, tiny));
    for (std::size_t i = 0; i < k; ++i) {
      T* p = direction + i * group;
      hn::Store(hn::MulAdd(turn, hn::Load(d, p), hn::Load(d, residual + i * group)), d, p);
    }
    square = next;
  }
}

/// The running matrices of one head for one vector of sequences: H_t (or its regularised inverse R_t) and G_t.
template <typename T>
class MesaState {
 public:
  MesaState(const MesaHead<T>& head, std::size_t lane)
      : head_(head),
        lane_(lane),
        h_(head.matrices + lane),
        g_(h_ + head.k * head.k * group),
        scratch_(g_ + head.k * head.k * group) {
    const Tag<T> d;
    zero(h_, head.k * head.k);
    zero(g_, head.k * head.k);
    if (head.iterations > 0) return;
    for (std::size_t i = 0; i < head.k; ++i) {
      hn::Store(hn::Set(d, T{1} / head.inverse_lambda), d, h_ + i * (head.k + 1) * group);
    }
  }

  /// H_t = gamma_t H_{t-1} + k_t k_t^T and G_t = gamma_t G_{t-1} + v_t k_t^T.
  HWY_INLINE void advance(std::size_t t) {
    const Tag<T> d;
    const std::size_t k = head_.k;
    const V<T> one = hn::Set(d, T{1});
    const V<T> gamma = head_.gamma ? hn::Load(d, head_.gamma + t * group + lane_) : one;
    const T* key = row(head_.key, t);
    if (head_.iterations > 0) {
      add_product(h_, gamma, one, key, 1, key, k);
    } else {  // R_t = R - R k k^T R / (1 + k^T R k)
      multiply(h_, k, 1, key, k, scratch_);
      const V<T> factor = hn::Div(one, hn::Add(one, dot(key, scratch_, k)));
      add_product(h_, one, hn::Neg(factor), scratch_, 1, scratch_, k);
    }
    add_product(g_, gamma, one, row(head_.value, t), 1, key, k);
  }

  /// x = (H_t + I / lambda)^-1 b.
  HWY_INLINE void apply_inverse(const T* b, T* x) const {
    if (head_.iterations > 0) {
      solve(h_, head_.inverse_lambda, b, head_.k, head_.iterations, x, scratch_);
    } else {
      multiply(h_, head_.k, 1, b, head_.k, x);
    }
  }

  [[nodiscard]] HWY_INLINE const T* row(const T* array, std::size_t t) const {
    return array + t * head_.k * group + lane_;
  }
  [[nodiscard]] HWY_INLINE T* h() const { return h_; }
  [[nodiscard]] HWY_INLINE T* g() const { return g_; }
  [[nodiscard]] HWY_INLINE T* scratch() const { return scratch_; }  ///< 4 k entries

 private:
  const MesaHead<T>& head_;
  std::size_t lane_;
  T* h_;
  T* g_;
  T* scratch_;
};

template <typename T>
void mesa(const MesaHead<T>& head, T* out, std::size_t stride) {
  over_lanes<T>([&](std::size_t lane) HWY_ATTR {
    MesaState<T> state(head, lane);
    for (std::size_t t = 0; t < head.length; ++t) {
      state.advance(t);
      T* solved = head.solved + t * head.k * group + lane;
      state.apply_inverse(state.row(head.query, t), solved);
      multiply(state.g(), head.k, 1, solved, head.k, out + t * stride * group + lane);
    }
  });
}

/// e*_t = (H_t + I / lambda)^-1 G_t^T e_t = d loss / d q_t, with the matrices run forward once more: backwards they
/// would lose all digits.
template <typename T>
HWY_INLINE void query_slopes(const MesaHead<T>& head, const MesaSlopes<T>& slopes, std::size_t lane, T* kept) {
  const Tag<T> d;
  const std::size_t square = head.k * head.k;
  MesaState<T> state(head, lane);
  for (std::size_t t = 0; t < head.length; ++t) {
    if (kept != nullptr) {  // H_{t-1} and G_{t-1}
      for (std::size_t i = 0; i < 2 * square; ++i) {
        hn::Store(hn::Load(d, state.h() + i * group), d, kept + (t * 2 * square + i) * group);
      }
    }
    state.advance(t);
    T* pooled = state.scratch() + 3 * head.k * group;
    multiply(state.g(), 1, head.k, slopes.output + t * slopes.stride * group + lane, head.k, pooled);
    state.apply_inverse(pooled, slopes.query + t * head.k * group + lane);
  }
}

/// Back in time with S = D_H + D_H^T and D_G: dk = S k + D_G^T v, dv = D_G k, d gamma = <S, H> / 2 + <D_G, G>.
template <typename T>
HWY_INLINE void key_slopes(const MesaHead<T>& head, const MesaSlopes<T>& slopes, std::size_t lane, const T* kept) {
  const Tag<T> d;
  const std::size_t k = head.k;
  const V<T> one = hn::Set(d, T{1});
  T* s = head.matrices + lane;
  T* dg = s + k * k * group;
  T* second = dg + k * k * group;
  zero(s, k * k);
  zero(dg, k * k);
  V<T> overlap = hn::Zero(d);
  V<T> decay = one;  // gamma of the following token
  for (std::size_t t = head.length; t-- > 0;) {
    const T* e_star = slopes.query + t * k * group + lane;
    const T* q_star = head.solved + t * k * group + lane;
    const T* key = head.key + t * k * group + lane;
    const T* value = head.value + t * k * group + lane;
    add_product(s, decay, hn::Neg(one), e_star, 1, q_star, k);
    add_product(s, one, hn::Neg(one), q_star, 1, e_star, k);
    add_product(dg, decay, one, slopes.output + t * slopes.stride * group + lane, 1, q_star, k);
    overlap = hn::Add(overlap, dot(e_star, q_star, k));
    T* key_slope = slopes.key + t * k * group + lane;
    multiply(s, k, 1, key, k, key_slope);
    multiply(dg, 1, k, value, k, second);
    for (std::size_t i = 0; i < k; ++i) {
      T* at = key_slope + i * group;
      hn::Store(hn::Add(hn::Load(d, at), hn::Load(d, second + i * group)), d, at);
    }
    multiply(dg, k, 1, key, k, slopes.value + t * k * group + lane);
    if (kept == nullptr) continue;
    const T* h = kept + t * 2 * k * k * group;
    const V<T> of_h = hn::Mul(hn::Set(d, static_cast<T>(0.5)), dot(s, h, k * k));
    hn::Store(hn::Add(of_h, dot(dg, h + k * k * group, k * k)), d, slopes.gamma + t * group + lane);
    decay = hn::Load(d, head.gamma + t * group + lane);
  }
  // 1 / lambda = exp(-rho) and d loss / d (1 / lambda) = -sum_t e*_t q*_t.
  hn::Store(hn::Mul(hn::Set(d, head.inverse_lambda), overlap), d, slopes.rho + lane);
}

template <typename T>
void mesa_backward(const MesaHead<T>& head, const MesaSlopes<T>& slopes) {
  over_lanes<T>([&](std::size_t lane) HWY_ATTR {
    T* kept = head.gamma ? head.matrices + (2 * head.k * head.k + 4 * head.k) * group + lane : nullptr;
    query_slopes(head, slopes, lane, kept);
    key_slopes(head, slopes, lane, static_cast<const T*>(kept));
  });
}

template <typename T>
const StackKernels<T>& table() {
  static constexpr StackKernels<T> kernels{project<T>,   contract<T>,           outer<T>,   causal<T>,
                                           softmax<T>,   softmax_backward<T>,   clip<T>,    clip_backward<T>,
                                           normalise<T>, normalise_backward<T>, sigmoid<T>, sigmoid_backward<T>,
                                           mesa<T>,      mesa_backward<T>};
  return kernels;
}

}  // namespace stack

const StackKernels<float>& single_stack() { return stack::table<float>(); }
const StackKernels<double>& double_stack() { return stack::table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {
HWY_EXPORT(single_stack);
HWY_EXPORT(double_stack);

template <>
const StackKernels<float>& stack_kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(single_stack)();
}
template <>
const StackKernels<double>& stack_kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(double_stack)();
}

}  // namespace iclflow
#endif
