#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/attention/covariate_sampler.hpp"
#include "iclflow/attention/estimators.hpp"
#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

/// [evaluation]: final weights and classical estimators on fresh contexts of several lengths and laws.
struct EvaluationPlan {
  std::vector<int> context_lengths;  ///< increasing
  std::size_t contexts = 50000;      ///< per length and law
  std::vector<Estimator> estimators;
  std::uint64_t seed = 1;
  std::vector<Shift> shifts;  ///< besides the training law
  std::string axes = "log";   ///< of the figure: "log" | "linear" | "semilog" (loss only)

  void resolve(TomlText& text) const;
};

/// Reads [evaluation] of the root section; empty without it. names: of the dynamics, which estimators must not share.
/// Throws InputError.
[[nodiscard]] std::optional<EvaluationPlan> read_evaluation(const Section& root, const Problem& problem,
                                                            const std::vector<std::string>& names);

}  // namespace iclflow
