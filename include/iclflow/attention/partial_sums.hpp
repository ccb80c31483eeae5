#pragma once

#include <algorithm>
#include <cstddef>

namespace iclflow {

/// Number of partial sums in which a batch is added up, `worthwhile` of which would each have enough work to be worth
/// its clearing and adding, of `bytes` bytes each. At most 32, so that memory does not grow with the batch, and at most
/// 1 GiB, but at least 2 where there is work for them. Never a matter of the threads: the bits are the same for all.
constexpr std::size_t partial_sums(std::size_t worthwhile, std::size_t bytes) {
  constexpr std::size_t memory = std::size_t{1} << 30U;
  const std::size_t most = std::clamp(memory / bytes, std::size_t{2}, std::size_t{32});
  return std::clamp(worthwhile, std::size_t{1}, most);
}

}  // namespace iclflow
