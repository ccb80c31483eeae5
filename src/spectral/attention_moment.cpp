#include "iclflow/spectral/attention_moment.hpp"

#include <algorithm>
#include <boost/math/constants/constants.hpp>
#include <cmath>
#include <stdexcept>

namespace iclflow {

namespace {

constexpr double largest_variance = 40.0;
/// Deviations at which the normal density is below 1e-20.
constexpr double tail = 9.6;

/// The trapezoidal rule on the whole line: of a function analytic for |Im x| < c its error is of order exp(-2 pi c /
/// h).
template <typename Function>
double trapezoid(const Function& f, double from, double to, double step) {
  const auto count = static_cast<long>(std::ceil((to - from) / step));
  double sum = 0.0;
  for (long n = 0; n <= count; ++n) sum += f(from + static_cast<double>(n) * step);
  return sum * step;
}

/// B(e^y) = E e^{-e^{y+s}}, s ~ N(0, a); bounded for |Im x| < pi / (2 sqrt(a)). A factor e^{2y} may stress s = -y, two
/// sqrt(a) deviations below what is likely.
double laplace_transform(double y, double deviation) {
  const double density = boost::math::constants::one_div_root_two_pi<double>();
  const double step = deviation > 0.66 ? 0.33 / deviation : 0.5;
  return trapezoid([=](double x) { return density * std::exp(-0.5 * x * x - std::exp(y + deviation * x)); },
                   -tail - 2.0 * deviation, tail, step);
}

}  // namespace

double attention_moment(double variance, double length) {
  if (!(length >= 1.0) || !(variance >= 0.0) || variance > largest_variance) {
    throw std::invalid_argument("attention_moment: needs L >= 1 and a variance of 0 to 40");
  }
  const double deviation = std::sqrt(variance);
  // A(t) = e^{2a} B(t e^{2a}), so with t = e^y
  //   E |p|^2 = L int e^{2y + 2a} B(e^{y + 2a}) B(e^y)^{L-1} dy              theory: eq:attention-moment
  const auto integrand = [=](double y) {
    const double first = laplace_transform(y + 2.0 * variance, deviation);
    if (first == 0.0) return 0.0;
    const double rest = length > 1.0 ? (length - 1.0) * std::log(laplace_transform(y, deviation)) : 0.0;
    return length * first * std::exp(2.0 * y + 2.0 * variance + rest);
  };
  // Below, the integrand is at most L e^{2y + 2a}; above, s = -y is needed, with normal density in y / sqrt(a).
  const double lowest = -std::max(2.0 * variance, 0.5 * variance + std::log(length)) - 25.0;
  const double highest = tail * deviation + 4.5;
  return trapezoid(integrand, lowest, highest, 0.25);  // |Im y| < pi / 2
}

double exponential_moment(double variance, double length) {
  // E |p|^2 -> e^a / L as L -> inf at fixed a                              theory: eq:exponential-moment
  return std::exp(variance) / length;
}

double saturated_moment(double variance, double length) {
  // E |p|^2 -> 1 - sqrt(2 log L / a) for a > 2 log L                       theory: eq:saturated-moment
  const double critical = 2.0 * std::log(length);
  return variance > critical ? 1.0 - std::sqrt(critical / variance) : 0.0;
}

}  // namespace iclflow
