#include "iclflow/problem/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <system_error>

namespace iclflow {

namespace {

/// Reads "[number]" at the front of text and removes it; -1 when there is none.
int take_index(std::string_view& text) {
  if (text.empty() || text.front() != '[') return -1;
  int index = -1;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), index);
  if (error != std::errc() || end == text.data() + text.size() || *end != ']') return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return index;
}

}  // namespace

Quantity parse_quantity(std::string_view name, int heads, int tasks) {
  if (name == "loss") return {};
  Quantity quantity;
  std::string_view rest = name;
  bool known = true;
  if (rest.starts_with("mu[")) {
    quantity.kind = Quantity::Kind::mu;
    rest.remove_prefix(2);
  } else if (rest.starts_with("omega[")) {
    quantity.kind = Quantity::Kind::omega;
    rest.remove_prefix(5);
  } else {
    known = false;
  }
  if (known) {
    quantity.head = take_index(rest);
    quantity.task = take_index(rest);
    known = rest.empty() && quantity.head >= 0 && quantity.head < heads && quantity.task >= 0 && quantity.task < tasks;
  }
  if (!known) {
    throw std::invalid_argument(
        fmt::format("unknown quantity '{}'; allowed: loss, mu[h][i], omega[h][i] with h = 0..{}, i = 0..{}", name,
                    heads - 1, tasks - 1));
  }
  return quantity;
}

}  // namespace iclflow
