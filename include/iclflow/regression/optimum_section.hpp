#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/reduction/closures.hpp"
#include "iclflow/spectral/optimum.hpp"

namespace iclflow {

/// [optimum]: search for the best weights on the spectral manifold, whatever a flow would find.
struct OptimumPlan {
  Closure closure{};
  OptimumOptions options{};

  void resolve(TomlText& text) const;
};
/// Empty without the table. Throws InputError.
[[nodiscard]] std::optional<OptimumPlan> read_optimum(const Section& root);

/// `optimum` of summary.json: closure, starts, loss, coefficient (null for unequal tasks), predicted_coefficient,
/// minima (where the starts ended, sorted), mu and omega (H x I, block means). threads: of the sampled closure.
[[nodiscard]] nlohmann::ordered_json optimum_json(const Problem& problem, const OptimumPlan& plan, int threads);
/// The same for a reader.
[[nodiscard]] std::string optimum_text(const nlohmann::ordered_json& optimum);

}  // namespace iclflow
