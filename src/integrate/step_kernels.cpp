#include "step_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "integrate/step_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<double, 8>;
using V = hn::Vec<Tag>;

template <std::size_t terms>
void combine_of(const double* coefficients, const double* const* vectors, std::size_t size, double* out) {
  const Tag d;
  std::size_t j = 0;
  for (; j + hn::Lanes(d) <= size; j += hn::Lanes(d)) {
    V sum = hn::Mul(hn::Set(d, coefficients[0]), hn::LoadU(d, vectors[0] + j));
    for (std::size_t t = 1; t < terms; ++t) {
      sum = hn::MulAdd(hn::Set(d, coefficients[t]), hn::LoadU(d, vectors[t] + j), sum);
    }
    hn::StoreU(sum, d, out + j);
  }
  for (; j < size; ++j) {
    double sum = coefficients[0] * vectors[0][j];
    for (std::size_t t = 1; t < terms; ++t) sum = std::fma(coefficients[t], vectors[t][j], sum);
    out[j] = sum;
  }
}

void combine_any(std::size_t terms, const double* coefficients, const double* const* vectors, std::size_t size,
                 double* out) {
  constexpr std::array table{combine_of<1>, combine_of<2>, combine_of<3>, combine_of<4>,
                             combine_of<5>, combine_of<6>, combine_of<7>, combine_of<8>};
  table[terms - 1](coefficients, vectors, size, out);
}

double sum_entries(const double* v, std::size_t size) {
  const Tag d;
  V sum0 = hn::Zero(d);
  V sum1 = sum0;
  std::size_t j = 0;
  for (; j + 2 * hn::Lanes(d) <= size; j += 2 * hn::Lanes(d)) {
    sum0 = hn::Add(sum0, hn::LoadU(d, v + j));
    sum1 = hn::Add(sum1, hn::LoadU(d, v + j + hn::Lanes(d)));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; j < size; ++j) sum += v[j];
  return sum;
}

void norms(const double* v, const double* scale, std::size_t size, double* largest, double* squares) {
  const Tag d;
  V most = hn::Zero(d);
  V sum = hn::Zero(d);
  std::size_t j = 0;
  for (; j + hn::Lanes(d) <= size; j += hn::Lanes(d)) {
    const V ratio = hn::Abs(hn::Div(hn::LoadU(d, v + j), hn::LoadU(d, scale + j)));
    most = hn::Max(most, ratio);
    sum = hn::MulAdd(ratio, ratio, sum);
  }
  *largest = hn::GetLane(hn::MaxOfLanes(d, most));
  *squares = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; j < size; ++j) {
    const double ratio = std::abs(v[j] / scale[j]);
    *largest = std::max(*largest, ratio);
    *squares += ratio * ratio;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(combine_any);
HWY_EXPORT(sum_entries);
HWY_EXPORT(norms);

void combine(std::initializer_list<Term> terms, Eigen::VectorXd& out) {
  std::array<double, 8> coefficients{};
  std::array<const double*, 8> vectors{};
  std::size_t count = 0;
  for (const Term& term : terms) {
    coefficients.at(count) = term.coefficient;
    vectors.at(count++) = term.vector.data();
  }
  const Eigen::Index size = terms.begin()->vector.size();
  out.resize(size);
  HWY_DYNAMIC_DISPATCH(combine_any)
  (count, coefficients.data(), vectors.data(), static_cast<std::size_t>(size), out.data());
}

double entry_sum(const Eigen::VectorXd& v) {
  return HWY_DYNAMIC_DISPATCH(sum_entries)(v.data(), static_cast<std::size_t>(v.size()));
}

Norms scaled_norms(const Eigen::VectorXd& v, const Eigen::VectorXd& scale) {
  Norms result{0.0, 0.0};
  HWY_DYNAMIC_DISPATCH(norms)
  (v.data(), scale.data(), static_cast<std::size_t>(v.size()), &result.largest, &result.mean_square);
  // a maximum passes over what is not a number, a sum does not; squares alone may overflow
  if (std::isnan(result.mean_square)) result.largest = result.mean_square;
  result.mean_square /= std::max(1.0, static_cast<double>(v.size()));
  return result;
}

}  // namespace iclflow
#endif  // HWY_ONCE
