#pragma once

#include <string>
#include <string_view>

namespace iclflow {

/// What an event may watch: "loss", "mu[h][i]" or "omega[h][i]" (mean of omega^h over block J_i).
struct Quantity {
  enum class Kind { loss, mu, omega };
  Kind kind = Kind::loss;
  int head = 0;
  int task = 0;
};

/// Throws std::invalid_argument saying what is allowed, also when head or task is out of range.
[[nodiscard]] Quantity parse_quantity(std::string_view name, int heads, int tasks);

}  // namespace iclflow
