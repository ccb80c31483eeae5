#pragma once

#include <cstddef>

#include "iclflow/experiment/run.hpp"
#include "iclflow/experiment/sweep_folder.hpp"

namespace iclflow {

/// One n-th of a sweep's members: those whose number leaves `index` over `count`.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
  [[nodiscard]] bool holds(std::size_t member) const { return member % count == index; }
};

/// Runs what is left of a shard's members, several at a time, each into its own folder. No result depends on the number
/// of threads. A member that fails is told and does not stop the others.
[[nodiscard]] RunStatus run_members(const Sweep& sweep, const SweepFolder& folder, const Shard& shard,
                                    const RunOptions& options, const Watch& watch);

}  // namespace iclflow
