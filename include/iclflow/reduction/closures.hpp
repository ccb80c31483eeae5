#pragma once

#include "iclflow/reduction/sampled_loss.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

namespace iclflow {

/// A closure by name, with the options of those that have some.
struct Closure {
  std::string name = "large-context";
  SampledOptions sampled{};  ///< of "sampled"
};

/// Every closure: those with a closed form and "sampled" (C2).
[[nodiscard]] const std::vector<std::string_view>& closures();
/// Throws std::invalid_argument for an unknown name; the sentence says what is allowed.
[[nodiscard]] std::unique_ptr<PopulationLoss> make_population_loss(const Closure& closure, const Problem& problem,
                                                                   const Coordinates& coordinates);
/// The reduced flow on any closure. Throws std::invalid_argument for an unknown name.
[[nodiscard]] SpectralFlow make_flow(const Problem& problem, const InitialState& start, const Closure& closure,
                                     bool full_coordinates = false);

}  // namespace iclflow
