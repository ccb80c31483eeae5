#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iclflow/experiment/reduction_section.hpp"
#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/system.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/mesa/complex_attention.hpp"

namespace iclflow {

/// One [[dynamics]] of the autoregressive flow.
struct AutoregressiveDynamics : ReductionDynamics {
  bool active_blocks = false;  ///< attention: only the two blocks of the reduction are trained

  [[nodiscard]] DynamicsPart part() const;
};

/// An experiment on the reduction of one layer of autoregressive linear attention.
struct AutoregressivePlan {
  UnitarySequences sequences{};
  double a = 0.1;
  double b = 0.1;
  double perturbation = 0.0;
  bool logarithmic_time = false;
  std::vector<AutoregressiveDynamics> dynamics{};
};

/// Reads [sequence], [model], [initial] and [[dynamics]]. Throws InputError.
[[nodiscard]] AutoregressivePlan read_autoregressive_plan(const Section& root);
void resolve(const AutoregressivePlan& plan, TomlText& text);
/// Kinds of [sequence] that this reads: "unitary", "rotation".
[[nodiscard]] const std::vector<std::string_view>& transition_kinds();
[[nodiscard]] std::string_view name(TransitionKind kind);
[[nodiscard]] std::string_view name(FirstState law);

}  // namespace iclflow
