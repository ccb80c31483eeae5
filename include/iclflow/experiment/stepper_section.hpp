#pragma once

#include <cstdint>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/integrate/ode.hpp"

namespace iclflow {

inline constexpr std::int64_t largest_seed = INT64_MAX;
inline constexpr std::int64_t largest_context_count = 100'000'000;

/// What the [[dynamics]] of every system have in common. All throw InputError.
///
/// Stepper and limits of an integrated dynamics; final_time is the default of maximum_step, a longer one has no
/// meaning, 0 when [time] is absent; jacobian: whether implicit methods can be had.
[[nodiscard]] StepperOptions read_stepper(const Section& section, double final_time, bool jacobian);
void resolve_stepper(const StepperOptions& options, TomlText& text);

/// `seeds`, different from each other, or (where allowed) `seed`; {1} by default.
[[nodiscard]] std::vector<std::uint64_t> read_seeds(const Section& section, bool single_allowed);

/// An early look at [time], which the generic part reads and refuses: `final` (0 when absent), and whether the spacing
/// is logarithmic.
[[nodiscard]] double final_time(const Section& root);
[[nodiscard]] bool logarithmic_time(const Section& root);

}  // namespace iclflow
