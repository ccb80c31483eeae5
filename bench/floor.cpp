// What a gradient step cannot do without: normals at the sampler's best rate and multiply-adds at the processor's.
#include <benchmark/benchmark.h>

#include <algorithm>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/random/normals.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/floor.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Ten independent sums in registers: returns the number of multiply-adds done.
template <typename T>
std::size_t multiply_adds(std::size_t rounds, T* out) {
  const hn::CappedTag<T, token_padding> d;
  hn::Vec<decltype(d)> sum[10];
  for (std::size_t k = 0; k < 10; ++k) sum[k] = hn::Set(d, static_cast<T>(k));
  const auto factor = hn::Set(d, static_cast<T>(0.5));
  const auto term = hn::Set(d, out[0]);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (auto& s : sum) s = hn::MulAdd(s, factor, term);
  }
  for (const auto& s : sum) out[0] += hn::GetLane(hn::SumOfLanes(d, s));
  return rounds * 10 * hn::Lanes(d);
}

/// e^x of an array.
template <typename T>
void exponentials(T* x, std::size_t count) {
  const hn::CappedTag<T, token_padding> d;
  for (std::size_t k = 0; k < count; k += hn::Lanes(d)) hn::Store(hn::Exp(d, hn::Load(d, x + k)), d, x + k);
}

void single_exponentials(float* x, std::size_t count) { exponentials(x, count); }
void double_exponentials(double* x, std::size_t count) { exponentials(x, count); }
std::size_t single_multiply_adds(std::size_t rounds, float* out) { return multiply_adds(rounds, out); }
std::size_t double_multiply_adds(std::size_t rounds, double* out) { return multiply_adds(rounds, out); }

}  // namespace HWY_NAMESPACE
}  // namespace iclflow::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow::bench {
namespace {

HWY_EXPORT(single_exponentials);
HWY_EXPORT(double_exponentials);
HWY_EXPORT(single_multiply_adds);
HWY_EXPORT(double_multiply_adds);

/// Nanoseconds for one of `count` things done in an iteration.
benchmark::Counter nanoseconds_each(double count) {
  return {1e-9 * count, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
}

constexpr std::size_t numbers = 4096;  // they stay in the nearest cache

template <typename T>
void normals(benchmark::State& state) {
  const auto array = aligned_zeros<T>(numbers);
  std::uint32_t context = 0;
  for (auto _ : state) {
    fill_normals({1, Stream::training, 0, context++}, 0, array.get(), numbers);
    benchmark::DoNotOptimize(array.get());
  }
  state.counters["nanoseconds"] = nanoseconds_each(numbers);
}
BENCHMARK_TEMPLATE(normals, float)->Name("floor/normal/single");
BENCHMARK_TEMPLATE(normals, double)->Name("floor/normal/double");

template <typename T>
void exponentials(benchmark::State& state) {
  const auto array = aligned_zeros<T>(numbers);
  for (auto _ : state) {
    std::fill_n(array.get(), numbers, T{-1});
    if constexpr (sizeof(T) == 4) {
      HWY_DYNAMIC_DISPATCH(single_exponentials)(array.get(), numbers);
    } else {
      HWY_DYNAMIC_DISPATCH(double_exponentials)(array.get(), numbers);
    }
    benchmark::DoNotOptimize(array.get());
  }
  state.counters["nanoseconds"] = nanoseconds_each(numbers);
}
BENCHMARK_TEMPLATE(exponentials, float)->Name("floor/exponential/single");
BENCHMARK_TEMPLATE(exponentials, double)->Name("floor/exponential/double");

template <typename T>
void multiply_adds(benchmark::State& state) {
  T sum{1};
  double count = 0;
  for (auto _ : state) {
    if constexpr (sizeof(T) == 4) {
      count = static_cast<double>(HWY_DYNAMIC_DISPATCH(single_multiply_adds)(1000, &sum));
    } else {
      count = static_cast<double>(HWY_DYNAMIC_DISPATCH(double_multiply_adds)(1000, &sum));
    }
    benchmark::DoNotOptimize(sum);
  }
  state.counters["nanoseconds"] = nanoseconds_each(count);
}
BENCHMARK_TEMPLATE(multiply_adds, float)->Name("floor/multiply_add/single");
BENCHMARK_TEMPLATE(multiply_adds, double)->Name("floor/multiply_add/double");

}  // namespace
}  // namespace iclflow::bench
#endif  // HWY_ONCE
