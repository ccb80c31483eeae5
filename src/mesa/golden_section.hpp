#pragma once

#include <numbers>
#include <utility>

namespace iclflow {

/// Minimiser of a function with one minimum on [low, high].
template <typename Function>
double golden_section(const Function& function, double low, double high, int rounds) {
  constexpr double ratio = 1.0 / std::numbers::phi;
  double left = high - ratio * (high - low), right = low + ratio * (high - low);
  double at_left = function(left), at_right = function(right);
  for (int k = 0; k < rounds; ++k) {
    if (at_left < at_right) {
      high = std::exchange(right, left);
      at_right = at_left;
      left = high - ratio * (high - low);
      at_left = function(left);
    } else {
      low = std::exchange(left, right);
      at_left = at_right;
      right = low + ratio * (high - low);
      at_right = function(right);
    }
  }
  return 0.5 * (low + high);
}

}  // namespace iclflow
