#include "iclflow/random/normals.hpp"

#include <algorithm>
#include <cstdint>

// Compiled once for every instruction set below; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "random/normals.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::uint32_t blocks_per_group = 8;
constexpr int rounds = 10;

/// Groups whose random words are all made before they become normals: two short loops keep the processor busier than
/// one long one, and the words, written where the normals will stand, stay in the nearest cache.
constexpr std::size_t groups_at_a_time = 32;

/// What the rounds of Philox4x32 share for one key: the counter words of the sequence and, for every round, its pair of
/// round keys, each repeated over a vector.
template <class D>
struct PhiloxSequence {
  using V = hn::Vec<D>;
  HWY_ALIGN std::uint64_t keys[2 * rounds * blocks_per_group];
  HWY_ALIGN std::uint64_t lane[blocks_per_group];  ///< 0, 1, 2, ...: Iota goes through memory at every call
  std::uint64_t context, step, stream;

  HWY_INLINE PhiloxSequence(D d, const StreamKey& key)
      : context(key.context), step(key.step), stream(static_cast<std::uint64_t>(key.stream)) {
    hn::Store(hn::Iota(d, std::uint64_t{0}), d, lane);
    auto k0 = static_cast<std::uint32_t>(key.seed);
    auto k1 = static_cast<std::uint32_t>(key.seed >> 32U);
    for (std::size_t round = 0; round < rounds; ++round) {
      hn::Store(hn::Set(d, std::uint64_t{k0}), d, keys + 2 * round * hn::Lanes(d));
      hn::Store(hn::Set(d, std::uint64_t{k1}), d, keys + (2 * round + 1) * hn::Lanes(d));
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }

  /// Four words of Lanes(d) consecutive blocks. Words sit in the low halves of 64 bit lanes, since MulEven multiplies
  /// those; what gathers in the high halves is never read.
  HWY_INLINE void words(D d, std::uint32_t first_block, V& x0, V& x1, V& x2, V& x3) const {
    const hn::Repartition<std::uint32_t, D> d32;
    const V m0 = hn::Set(d, 0xD2511F53U);
    const V m1 = hn::Set(d, 0xCD9E8D57U);
    x0 = hn::Add(hn::Load(d, lane), hn::Set(d, std::uint64_t{first_block}));
    x1 = hn::Set(d, context);
    x2 = hn::Set(d, step);
    x3 = hn::Set(d, stream);
    for (std::size_t round = 0; round < rounds; ++round) {
      const V p0 = hn::MulEven(hn::BitCast(d32, m0), hn::BitCast(d32, x0));
      const V p1 = hn::MulEven(hn::BitCast(d32, m1), hn::BitCast(d32, x2));
      x0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(x1, hn::Load(d, keys + 2 * round * hn::Lanes(d))));
      x2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(x3, hn::Load(d, keys + (2 * round + 1) * hn::Lanes(d))));
      x1 = p1;
      x3 = p0;
    }
  }
};

/// Words a (low half) and b (high half) side by side in each 64 bit lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V side_by_side(D d, V a, V b) {
  return hn::Or(hn::And(a, hn::Set(d, std::uint64_t{0xFFFFFFFFU})), hn::ShiftLeft<32>(b));
}

/// c0 + c1 x + c2 x^2 + ...
template <class D, class V = hn::Vec<D>, typename... Rest>
HWY_INLINE V polynomial(D d, V x, double c0, Rest... rest) {
  const V constant = hn::Set(d, static_cast<hn::TFromD<D>>(c0));
  if constexpr (sizeof...(rest) == 0) {
    return constant;
  } else {
    return hn::MulAdd(polynomial(d, x, rest...), x, constant);
  }
}

// The polynomials below have the least largest relative error on their interval (Remez), given in bits.

/// sin(pi f / 2) / f as a function of f^2 <= 1/4: 28 bits in single, 58 in double precision.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine_over_argument(D d, V square) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return polynomial(d, square, 1.5707963217084682, -0.64596346024012343, 0.079680032797699655,
                      -0.0046016578939530240);
  } else {
    return polynomial(d, square, 1.5707963267948966, -0.64596409750624424, 0.079692626246039562, -0.0046817541322824540,
                      0.00016044115029189454, -3.5986417551299962e-6, 5.6337210755562739e-8);
  }
}

/// cos(pi f / 2) as a function of f^2 <= 1/4: 34 and 54 bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V cosine(D d, V square) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return polynomial(d, square, 0.99999999994394108, -1.2337005395645893, 0.25366918259282719, -0.020859936011468248,
                      0.00090336294934780438);
  } else {
    return polynomial(d, square, 1.0, -1.2337005501361489, 0.25366950789975307, -0.020863480733058039,
                      0.00091925993557542669, -0.000025200084118976641, 4.6546174059489119e-7);
  }
}

/// (atanh(s) / s - 1) / s^2 as a function of s^2 <= ((sqrt 2 - 1) / (sqrt 2 + 1))^2 = 0.03: 22 and 51 bits, of a
/// correction of at most 0.01.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V inverse_hyperbolic_tangent_correction(D d, V square) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return polynomial(d, square, 0.33333342549780244, 0.19994382000726213, 0.14790257121619346);
  } else {
    return polynomial(d, square, 0.33333333333333348, 0.19999999999949591, 0.14285714313052495, 0.11111105557936362,
                      0.090914451861724130, 0.076658418875277686, 0.073084397396395666);
  }
}

/// What the formats of the two precisions differ in.
template <typename T>
struct Format;
template <>
struct Format<float> {
  static constexpr int mantissa = 23;
  static constexpr std::int32_t inverse_root_two = 0x3F3504F3;
};
template <>
struct Format<double> {
  static constexpr int mantissa = 52;
  static constexpr std::int64_t inverse_root_two = 0x3FE6A09E667F3BCD;
  static constexpr std::uint64_t one = 0x3FF0000000000000U;
  static constexpr std::uint64_t fraction = 0x000FFFFFFFFFFFFFU;
};

template <class D, class VI = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE hn::Vec<D> to_floating(D d, VI integer) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::ConvertTo(d, integer);
  } else {
    // a small integer added to the bits of 2^52 + 2^51; conversions of 64 bits are slow before AVX-512
    const hn::RebindToSigned<D> di;
    const auto bias = hn::Set(di, std::int64_t{0x4338000000000000});
    return hn::Sub(hn::BitCast(d, hn::Add(integer, bias)), hn::Set(d, 0x1.8p52));
  }
}

/// sqrt(-2 ln u), u in (0, 1]. With u = 2^e (1 + f), 1 + f in [1/sqrt 2, sqrt 2), and s = f / (2 + f):
/// ln u = e ln 2 + 2 atanh s.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V box_muller_radius(D d, V u) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> di;
  const auto constant = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto bits = hn::BitCast(di, u);
  const auto exponent = hn::ShiftRight<Format<T>::mantissa>(hn::Sub(bits, hn::Set(di, Format<T>::inverse_root_two)));
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<Format<T>::mantissa>(exponent))), constant(1.0));
  const V s = hn::Div(f, hn::Add(f, constant(2.0)));
  const V square = hn::Mul(s, s);
  const V correction = hn::Mul(square, inverse_hyperbolic_tangent_correction(d, square));
  const V head = hn::Mul(s, constant(-4.0));
  const V near_one = hn::MulAdd(head, correction, head);
  return hn::Sqrt(hn::MulAdd(to_floating(d, exponent), constant(-1.3862943611198906), near_one));
}

/// Words of `groups` groups into out, each group as its radial words followed by its angular ones.
template <typename Word, class D>
HWY_INLINE void fill_words(D d64, const PhiloxSequence<D>& sequence, std::uint32_t block, std::size_t groups,
                           Word* out) {
  const hn::Repartition<Word, D> dw;
  const std::size_t lanes = hn::Lanes(d64);
  constexpr std::size_t half = blocks_per_group * 8 / sizeof(Word);
  for (std::size_t group = 0; group < groups; ++group, block += blocks_per_group, out += 2 * half) {
    for (std::size_t lane = 0; lane < blocks_per_group; lane += lanes) {
      hn::Vec<D> x0, x1, x2, x3;
      sequence.words(d64, block + static_cast<std::uint32_t>(lane), x0, x1, x2, x3);
      // four words make two pairs of normals in single precision, one pair in double
      constexpr bool single = sizeof(Word) == 4;
      const hn::Vec<D> radial = single ? side_by_side(d64, x0, x2) : side_by_side(d64, x0, x1);
      const hn::Vec<D> angular = single ? side_by_side(d64, x1, x3) : side_by_side(d64, x2, x3);
      const std::size_t at = lane * 8 / sizeof(Word);
      hn::StoreU(hn::BitCast(dw, radial), dw, out + at);
      hn::StoreU(hn::BitCast(dw, angular), dw, out + half + at);
    }
  }
}

/// Radial words -> u in (0, 1]: the centres of cells of 31 bits.
template <class D>
HWY_INLINE hn::Vec<D> uniform(D d, hn::Vec<hn::Repartition<std::uint32_t, D>> word) {
  const hn::RebindToSigned<D> di;
  const auto counted = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(word)));
  return hn::MulAdd(counted, hn::Set(d, 0x1p-31F), hn::Set(d, 0x1p-32F));
}
/// 1 - k / 2^52 with the word's last 52 bits k.
template <class D>
HWY_INLINE hn::Vec<D> uniform(D d, hn::Vec<hn::Repartition<std::uint64_t, D>> word) {
  const hn::Repartition<std::uint64_t, D> du;
  const auto below_two = hn::OrAnd(hn::Set(du, Format<double>::one), word, hn::Set(du, Format<double>::fraction));
  return hn::Sub(hn::Set(d, 2.0), hn::BitCast(d, below_two));
}

/// Angular words -> f in [-1/2, 1/2) from all but their first two bits, in single precision.
template <class D>
HWY_INLINE hn::Vec<D> quarter_turn(D d, hn::Vec<hn::Repartition<std::uint32_t, D>> word) {
  const hn::RebindToSigned<D> di;
  return hn::Mul(hn::ConvertTo(d, hn::BitCast(di, hn::ShiftLeft<2>(word))), hn::Set(d, 0x1p-32F));
}
/// The same from the last 52 bits, in double precision.
template <class D>
HWY_INLINE hn::Vec<D> quarter_turn(D d, hn::Vec<hn::Repartition<std::uint64_t, D>> word) {
  const hn::Repartition<std::uint64_t, D> du;
  const auto below_two = hn::OrAnd(hn::Set(du, Format<double>::one), word, hn::Set(du, Format<double>::fraction));
  return hn::Sub(hn::BitCast(d, below_two), hn::Set(d, 1.5));
}

/// Radii and angular words in place -> pairs of normals. The angle is pi f / 2; the first two bits of the word reflect
/// it at the origin and at the diagonal, which together fill the circle.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void normals_of(D d, T* radius_at, T* angular_at) {
  const hn::RebindToUnsigned<D> du;
  using Word = hn::TFromD<decltype(du)>;
  constexpr Word first_bit = Word{1} << (8 * sizeof(Word) - 1);
  const auto word = hn::BitCast(du, hn::LoadU(d, angular_at));
  const hn::Vec<D> f = quarter_turn(d, word);
  const hn::Vec<D> square = hn::Mul(f, f);
  const hn::Vec<D> sine = hn::Mul(f, sine_over_argument(d, square));
  const hn::Vec<D> other = cosine(d, square);
  const auto sign = hn::And(word, hn::Set(du, first_bit));
  const hn::Vec<D> radius = hn::Xor(hn::LoadU(d, radius_at), hn::BitCast(d, sign));
  const auto exchanged = hn::RebindMask(d, hn::TestBit(word, hn::Set(du, first_bit >> 1)));
  hn::StoreU(hn::Mul(radius, hn::IfThenElse(exchanged, sine, other)), d, radius_at);
  hn::StoreU(hn::Mul(radius, hn::IfThenElse(exchanged, other, sine)), d, angular_at);
}

template <typename T, typename Word>
HWY_INLINE void fill(const StreamKey& key, std::uint32_t first_group, T* out, std::size_t count) {
  using D = hn::CappedTag<std::uint64_t, blocks_per_group>;
  const D d64;
  const hn::Repartition<T, D> df;
  const hn::Repartition<Word, D> dw;
  const PhiloxSequence<D> sequence(d64, key);
  constexpr std::size_t half = normals_per_group<T> / 2;
  const std::size_t groups = count / normals_per_group<T>;
  for (std::size_t begin = 0; begin < groups; begin += groups_at_a_time) {
    const std::size_t now = std::min(groups_at_a_time, groups - begin);
    T* at = out + begin * normals_per_group<T>;
    fill_words(d64, sequence, (first_group + static_cast<std::uint32_t>(begin)) * blocks_per_group, now,
               reinterpret_cast<Word*>(at));
    for (std::size_t group = 0; group < now; ++group) {
      T* radius = at + group * normals_per_group<T>;
      for (std::size_t lane = 0; lane < half; lane += hn::Lanes(df)) {
        const auto word = hn::BitCast(dw, hn::LoadU(df, radius + lane));
        hn::StoreU(box_muller_radius(df, uniform(df, word)), df, radius + lane);
      }
    }
    for (std::size_t group = 0; group < now; ++group) {
      T* radius = at + group * normals_per_group<T>;
      for (std::size_t lane = 0; lane < half; lane += hn::Lanes(df))
        normals_of(df, radius + lane, radius + half + lane);
    }
  }
}

void fill_single(const StreamKey& key, std::uint32_t first_group, float* out, std::size_t count) {
  fill<float, std::uint32_t>(key, first_group, out, count);
}

void fill_double(const StreamKey& key, std::uint32_t first_group, double* out, std::size_t count) {
  fill<double, std::uint64_t>(key, first_group, out, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(fill_single);
HWY_EXPORT(fill_double);

std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, float* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(fill_single)(key, first_group, out, count);
  return first_group + static_cast<std::uint32_t>(count / normals_per_group<float>);
}

std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, double* out, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(fill_double)(key, first_group, out, count);
  return first_group + static_cast<std::uint32_t>(count / normals_per_group<double>);
}

}  // namespace iclflow
#endif  // HWY_ONCE
