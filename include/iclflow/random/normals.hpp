#pragma once

#include <cstddef>

#include "iclflow/random/stream.hpp"

namespace iclflow {

/// Numbers that one group of eight Philox blocks yields; fill_normals works on whole groups.
template <typename T>
inline constexpr std::size_t normals_per_group = sizeof(T) == 4 ? 32 : 16;

/// Fills out[0..count) with independent standard normals of the sequence `key`, starting at block 8 * first_group.
/// count must be a multiple of normals_per_group<T>. Vectorised (Highway, dispatched at run time); the order does not
/// depend on the vector width. In double they are NormalStream's numbers: the first ones of the group's eight pairs, then
/// the second ones. Returns the first group not used.
std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, float* out, std::size_t count);
std::uint32_t fill_normals(const StreamKey& key, std::uint32_t first_group, double* out, std::size_t count);

/// Smallest multiple of normals_per_group<T> that holds count numbers.
template <typename T>
constexpr std::size_t whole_groups(std::size_t count) {
  return (count + normals_per_group<T> - 1) / normals_per_group<T> * normals_per_group<T>;
}

}  // namespace iclflow
