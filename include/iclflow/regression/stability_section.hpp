#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/reduction/closures.hpp"
#include "iclflow/regression/saddle.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// [stability]: how the full dynamics leaves the limit (theory/08-saddle.md).
struct StabilityPlan {
  SaddleOptions saddle{};  ///< modes = 0: no eigenvalues
  double low = 0.001;      ///< growth is measured while an unused -mu is between these multiples of the largest
  double high = 0.005;     ///< |mu| of the dedicated limit

  void resolve(TomlText& text) const;
};
/// Empty without the table. Throws InputError, also for merged weights and for fewer heads than tasks.
[[nodiscard]] std::optional<StabilityPlan> read_stability(const Section& root, const Problem& problem);

/// Of a reduced flow's final state: `predicted` (head, task, growth_rate, multiplicity of each unused entry),
/// `predicted_growth_rate` (their mean g), `predicted_e_fold` (1/g: how much later the escape is per e-fold of the
/// batch), and unless modes = 0 `modes` (growth_rate, head, task, slope, share, antisymmetry),
/// largest first, `growth_rate` and `sampled_slope`, the means over those modes that are an unused entry's, and
/// `largest_other`, the largest that is no output-value entry's (sampling noise: zero for the population).
[[nodiscard]] nlohmann::ordered_json linear_stability_json(const Problem& problem, const StabilityPlan& plan,
                                                           const Closure& closure, const SpectralState& state,
                                                           int threads);

/// Of a simulation: `growth_rate` (g: half the rate of the unused mu, mean over the entries that left, then over
/// seeds), `escape_time` (when the first of them is at -high) and `escape_e_folds` (the product of the two) with
/// standard errors over seeds, and `escaped`, their number.
[[nodiscard]] nlohmann::ordered_json escape_json(const Problem& problem, const StabilityPlan& plan,
                                                 const DynamicsResult& simulation);

}  // namespace iclflow
