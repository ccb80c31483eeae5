#include "iclflow/random/stream.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace iclflow {

namespace {

/// 52 random bits to the centre of their cell in (0, 1).
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32U | low) >> 12U;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

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
  const double radius = std::sqrt(-2.0 * std::log(uniform(word[1], word[0])));
  const double angle = 2.0 * std::numbers::pi * uniform(word[3], word[2]);
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

}  // namespace iclflow
