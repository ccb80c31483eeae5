#include "iclflow/random/normals.hpp"

#include <algorithm>
#include <cstdint>

// Compiled once for every instruction set below; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "random/normals.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
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

/// cosine and sine of a quarter-turn count plus a remainder angle in [-pi/4, pi/4]; Taylor polynomials, whose
/// first neglected terms are below half a unit in the last place there.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine_polynomial(D d, V angle) {
  const V z = hn::Mul(angle, angle);
  V p;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    p = hn::Set(d, -1.9515295891e-4F);
    p = hn::MulAdd(p, z, hn::Set(d, 8.3321608736e-3F));
    p = hn::MulAdd(p, z, hn::Set(d, -1.6666654611e-1F));
  } else {
    p = hn::Set(d, 1.0 / 355687428096000.0);
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 1307674368000.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 6227020800.0));
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 39916800.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 362880.0));
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 5040.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 120.0));
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 6.0));
  }
  return hn::MulAdd(hn::Mul(p, z), angle, angle);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V cosine_polynomial(D d, V angle) {
  using T = hn::TFromD<D>;
  const V z = hn::Mul(angle, angle);
  V p;
  if constexpr (sizeof(T) == 4) {
    p = hn::Set(d, 2.443315711809948e-5F);
    p = hn::MulAdd(p, z, hn::Set(d, -1.388731625493765e-3F));
    p = hn::MulAdd(p, z, hn::Set(d, 4.166664568298827e-2F));
  } else {
    p = hn::Set(d, 1.0 / 20922789888000.0);
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 87178291200.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 479001600.0));
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 3628800.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 40320.0));
    p = hn::MulAdd(p, z, hn::Set(d, -1.0 / 720.0));
    p = hn::MulAdd(p, z, hn::Set(d, 1.0 / 24.0));
  }
  p = hn::MulAdd(p, z, hn::Set(d, static_cast<T>(-0.5)));
  return hn::MulAdd(p, z, hn::Set(d, static_cast<T>(1)));
}

/// radius * (cos, sin)(quarter * pi/2 + angle), quarter an integer modulo 4.
template <class D, class DI, class V = hn::Vec<D>, class VI = hn::Vec<DI>>
HWY_INLINE void polar(D d, DI di, V radius, VI quarter, V angle, V& first, V& second) {
  const V sine = sine_polynomial(d, angle);
  const V cosine = cosine_polynomial(d, angle);
  const VI one = hn::Set(di, 1);
  const VI two = hn::Set(di, 2);
  const auto odd = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  constexpr int sign_shift = static_cast<int>(sizeof(hn::TFromD<D>)) * 8 - 2;
  const VI cosine_sign = hn::ShiftLeft<sign_shift>(hn::And(hn::Add(quarter, one), two));
  const VI sine_sign = hn::ShiftLeft<sign_shift>(hn::And(quarter, two));
  first = hn::Mul(radius, hn::Xor(hn::IfThenElse(odd, sine, cosine), hn::BitCast(d, cosine_sign)));
  second = hn::Mul(radius, hn::Xor(hn::IfThenElse(odd, cosine, sine), hn::BitCast(d, sine_sign)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V box_muller_radius(D d, V uniform) {
  return hn::Sqrt(hn::Mul(hn::Set(d, static_cast<hn::TFromD<D>>(-2)), hn::Log(d, uniform)));
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

/// Box-Muller in place on vectors of words: 31 bits of radius, 32 of angle.
template <class D>
HWY_INLINE void normals_of(D df, float* radial_at, float* angular_at) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto radial = hn::BitCast(du, hn::LoadU(df, radial_at));
  const auto angular = hn::BitCast(di, hn::LoadU(df, angular_at));
  // 31 bits to the centre of their cell in (0, 1]
  const auto uniform = hn::Mul(
      hn::Add(hn::ConvertTo(df, hn::BitCast(di, hn::ShiftRight<1>(radial))), hn::Set(df, 0.5F)), hn::Set(df, 0x1p-31F));
  // a turn in 32 bits: nearest quarter, signed remainder
  const auto quarter = hn::ShiftRight<30>(hn::Add(angular, hn::Set(di, 1 << 29)));
  const auto remainder = hn::Sub(angular, hn::ShiftLeft<30>(quarter));
  const auto angle = hn::Mul(hn::ConvertTo(df, remainder), hn::Set(df, 1.4629180792671596e-9F));  // 2 pi / 2^32
  hn::Vec<D> first, second;
  polar(df, di, box_muller_radius(df, uniform), quarter, angle, first, second);
  hn::StoreU(first, df, radial_at);
  hn::StoreU(second, df, angular_at);
}

/// Box-Muller in place on vectors of words: 52 bits of radius, 52 of angle.
template <class D>
HWY_INLINE void normals_of(D df, double* radial_at, double* angular_at) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto integer_bias = hn::Set(du, std::uint64_t{0x4330000000000000U});  // 2^52 as a double
  const auto signed_bias = hn::Set(di, std::int64_t{0x4338000000000000});     // 2^52 + 2^51
  const auto radial = hn::ShiftRight<12>(hn::BitCast(du, hn::LoadU(df, radial_at)));
  const auto angular = hn::BitCast(di, hn::ShiftRight<12>(hn::BitCast(du, hn::LoadU(df, angular_at))));
  const auto counted = hn::Sub(hn::BitCast(df, hn::Or(radial, integer_bias)), hn::Set(df, 0x1p52));
  const auto uniform = hn::Mul(hn::Add(counted, hn::Set(df, 0.5)), hn::Set(df, 0x1p-52));
  // a turn in 52 bits
  const auto quarter = hn::ShiftRight<50>(hn::Add(angular, hn::Set(di, std::int64_t{1} << 49)));
  const auto remainder = hn::Sub(angular, hn::ShiftLeft<50>(quarter));
  const auto signed_count = hn::Sub(hn::BitCast(df, hn::Add(remainder, signed_bias)), hn::Set(df, 0x1.8p52));
  const auto angle =
      hn::Mul(hn::Add(signed_count, hn::Set(df, 0.5)), hn::Set(df, 1.3951473992034527e-15));  // 2 pi / 2^52
  hn::Vec<D> first, second;
  polar(df, di, box_muller_radius(df, uniform), quarter, angle, first, second);
  hn::StoreU(first, df, radial_at);
  hn::StoreU(second, df, angular_at);
}

template <typename T, typename Word>
HWY_INLINE void fill(const StreamKey& key, std::uint32_t first_group, T* out, std::size_t count) {
  using D = hn::CappedTag<std::uint64_t, blocks_per_group>;
  const D d64;
  const hn::Repartition<T, D> df;
  const PhiloxSequence<D> sequence(d64, key);
  constexpr std::size_t half = normals_per_group<T> / 2;
  const std::size_t groups = count / normals_per_group<T>;
  for (std::size_t begin = 0; begin < groups; begin += groups_at_a_time) {
    const std::size_t now = std::min(groups_at_a_time, groups - begin);
    T* at = out + begin * normals_per_group<T>;
    fill_words(d64, sequence, (first_group + static_cast<std::uint32_t>(begin)) * blocks_per_group, now,
               reinterpret_cast<Word*>(at));
    for (std::size_t group = 0; group < now; ++group, at += normals_per_group<T>) {
      for (std::size_t lane = 0; lane < half; lane += hn::Lanes(df)) normals_of(df, at + lane, at + half + lane);
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
