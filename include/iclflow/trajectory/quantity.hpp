#pragma once

#include <string_view>

namespace iclflow {

/// An event quantity, parsed: "loss", "mu[h][i]" or "omega[h][i]" (mean over block i).
struct Quantity {
  enum class Kind { loss, mu, omega } kind = Kind::loss;
  int head = 0;
  int task = 0;
};

/// Throws std::invalid_argument with what is allowed for an unknown name or an index outside heads x tasks.
[[nodiscard]] Quantity parse_quantity(std::string_view name, int heads, int tasks);

}  // namespace iclflow
