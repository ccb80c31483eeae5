#include "iclflow/trajectory/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace iclflow {

namespace {

/// Reads "[number]" off the front of text; false when text does not start so.
bool read_index(std::string_view& text, int& index) {
  if (text.empty() || text.front() != '[') return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), index);
  if (error != std::errc() || end == text.data() + text.size() || *end != ']') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

bool read_entry(std::string_view text, std::string_view prefix, int heads, int tasks, Quantity& quantity) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return read_index(text, quantity.head) && read_index(text, quantity.task) && text.empty() && quantity.head >= 0 &&
         quantity.head < heads && quantity.task >= 0 && quantity.task < tasks;
}

}  // namespace

Quantity parse_quantity(std::string_view name, int heads, int tasks) {
  Quantity quantity;
  if (name == "loss") return quantity;
  quantity.kind = Quantity::Kind::mu;
  if (read_entry(name, "mu", heads, tasks, quantity)) return quantity;
  quantity.kind = Quantity::Kind::omega;
  if (read_entry(name, "omega", heads, tasks, quantity)) return quantity;
  throw std::invalid_argument(
      fmt::format("quantity \"{}\" is not known: \"loss\", \"mu[h][i]\" and \"omega[h][i]\" are allowed, h = 0..{}, "
                  "i = 0..{}",
                  name, heads - 1, tasks - 1));
}

}  // namespace iclflow
