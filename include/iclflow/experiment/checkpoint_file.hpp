#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "iclflow/integrate/control.hpp"

namespace iclflow {

/// One member (dynamics and seed) of a run that is not whole yet.
struct SavedMember {
  bool done = false;      ///< the member reached its end; checkpoint.trajectory is all of it
  Checkpoint checkpoint;  ///< where it stands
  double wall_seconds = 0.0;
};

/// Binary, this machine's byte order; written under a temporary name and renamed. `fingerprint` ties it to one resolved
/// experiment. Throws std::runtime_error naming the file.
void save_member(const std::filesystem::path& file, std::uint64_t fingerprint, const SavedMember& member);
/// Empty when there is none. Throws std::runtime_error when it is damaged or of another experiment.
[[nodiscard]] std::optional<SavedMember> load_member(const std::filesystem::path& file, std::uint64_t fingerprint);

/// FNV-1a of a text.
[[nodiscard]] std::uint64_t fingerprint(std::string_view text);

}  // namespace iclflow
