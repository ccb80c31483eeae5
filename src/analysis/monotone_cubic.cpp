#include "iclflow/analysis/monotone_cubic.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace iclflow {
namespace {

// Slope at the end of two intervals h0 (outer), h1 with secants d0, d1: three-point formula, limited to keep the shape.
double end_slope(double h0, double h1, double d0, double d1) {
  const double slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
  if (slope * d0 <= 0.0) return 0.0;
  if (d0 * d1 <= 0.0 && std::abs(slope) > 3.0 * std::abs(d0)) return 3.0 * d0;
  return slope;
}

// Weighted harmonic mean of the secants; zero at an extremum.
double inner_slope(double h0, double h1, double d0, double d1) {
  if (!(d0 * d1 > 0.0)) return 0.0;
  const double w0 = 2.0 * h1 + h0;
  const double w1 = h1 + 2.0 * h0;
  return (w0 + w1) / (w0 / d0 + w1 / d1);
}

void check(std::span<const double> x, std::span<const double> y) {
  if (x.empty() || x.size() != y.size()) throw std::invalid_argument("interpolation needs one value per point");
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!std::isfinite(x[k]) || (k > 0 && !(x[k] > x[k - 1]))) {
      throw std::invalid_argument("interpolation needs finite, increasing points");
    }
  }
}

}  // namespace

MonotoneCubic::MonotoneCubic(std::span<const double> x, std::span<const double> y)
    : x_(x.begin(), x.end()), y_(y.begin(), y.end()), slope_(x.size(), 0.0) {
  check(x, y);
  const std::size_t n = x_.size();
  if (n < 2) return;
  const auto width = [&](std::size_t k) { return x_[k + 1] - x_[k]; };
  const auto secant = [&](std::size_t k) { return (y_[k + 1] - y_[k]) / width(k); };
  if (n == 2) {
    slope_.assign(2, secant(0));
    return;
  }
  slope_[0] = end_slope(width(0), width(1), secant(0), secant(1));
  for (std::size_t k = 1; k + 1 < n; ++k) slope_[k] = inner_slope(width(k - 1), width(k), secant(k - 1), secant(k));
  slope_[n - 1] = end_slope(width(n - 2), width(n - 3), secant(n - 2), secant(n - 3));
}

double MonotoneCubic::within(std::size_t k, double fraction) const {
  const double width = x_[k] - x_[k - 1];
  const double s = fraction;
  const double r = 1.0 - s;
  // Hermite basis: y0 (1+2s) r^2 + h m0 s r^2 + y1 s^2 (1+2r) - h m1 s^2 r
  return y_[k - 1] * (1.0 + 2.0 * s) * r * r + width * slope_[k - 1] * s * r * r + y_[k] * s * s * (1.0 + 2.0 * r) -
         width * slope_[k] * s * s * r;
}

double MonotoneCubic::operator()(double position) const {
  if (position <= x_.front()) return y_.front();
  if (position >= x_.back()) return y_.back();
  const auto above = std::upper_bound(x_.begin(), x_.end(), position);
  const auto k = static_cast<std::size_t>(above - x_.begin());
  return within(k, (position - x_[k - 1]) / (x_[k] - x_[k - 1]));
}

double MonotoneCubic::crossing(std::size_t k, double level) const {
  const bool falling = y_.at(k) < y_.at(k - 1);
  if ((y_[k - 1] - level) * (y_[k] - level) > 0.0) throw std::invalid_argument("the interval does not hold the level");
  double low = 0.0;
  double high = 1.0;
  // The curve is monotone here, so bisection cannot miss; 60 halvings reach the last bit of a fraction.
  for (int halving = 0; halving < 60; ++halving) {
    const double middle = 0.5 * (low + high);
    const double value = within(k, middle);
    const bool passed = falling ? value <= level : value >= level;
    (passed ? high : low) = middle;
  }
  return x_[k - 1] + high * (x_[k] - x_[k - 1]);
}

}  // namespace iclflow
