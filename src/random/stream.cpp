#include "iclflow/random/stream.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace iclflow {

namespace {

std::uint64_t joined(std::uint32_t high, std::uint32_t low) { return static_cast<std::uint64_t>(high) << 32U | low; }

/// The last 52 bits as a fraction in [0, 1).
double fraction(std::uint64_t bits) { return static_cast<double>(bits & 0x000FFFFFFFFFFFFFU) * 0x1p-52; }

}  // namespace

double NormalStream::operator()() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const r123::Philox4x32::ctr_type counter{
      {block_++, key_.context, key_.step, static_cast<std::uint32_t>(key_.stream)}};
  const r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(key_.seed), static_cast<std::uint32_t>(key_.seed >> 32U)}};
  const auto word = r123::Philox4x32()(counter, key);
  // an angle within a quarter turn; the first two bits reflect it at the origin and at the diagonal
  const std::uint64_t angular = joined(word[3], word[2]);
  const bool opposite = (angular >> 63U) != 0;
  const bool exchanged = (angular >> 62U & 1U) != 0;
  const double radius = (opposite ? -1.0 : 1.0) * std::sqrt(-2.0 * std::log(1.0 - fraction(joined(word[1], word[0]))));
  const double angle = 0.5 * std::numbers::pi * (fraction(angular) - 0.5);
  spare_ = radius * (exchanged ? std::cos(angle) : std::sin(angle));
  has_spare_ = true;
  return radius * (exchanged ? std::sin(angle) : std::cos(angle));
}

}  // namespace iclflow
