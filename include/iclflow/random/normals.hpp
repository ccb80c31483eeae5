#pragma once

#include <cstddef>

#include "iclflow/random/stream.hpp"

namespace iclflow {

/// Numbers that one group of eight Philox blocks yields; fill_normals works on whole groups.
template <typename T>
inline constexpr std::size_t normals_per_group = sizeof(T) == 4 ? 32 : 16;

/// Fills out[0..count) with independent standard normals of the sequence `key`, starting at block 8 * first_group.
/// count must be a multiple of normals_per_group<T>. Vectorised (Highway, dispatched at run time); the order does not
/// depend on the vector width: the first ones of a group's pairs, then the second ones. A pair is Box-Muller's, with an
/// angle in [-pi/4, pi/4) that two more bits reflect at the origin and at the diagonal. Radius and angle have 31 and 30
/// bits in single, 52 and 52 in double precision. Returns the first group not used.
std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, float* out, std::size_t count);
std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, double* out, std::size_t count);

/// Smallest multiple of normals_per_group<T> that holds count numbers.
template <typename T>
constexpr std::size_t whole_groups(std::size_t count) {
  return (count + normals_per_group<T> - 1) / normals_per_group<T> * normals_per_group<T>;
}

}  // namespace iclflow
