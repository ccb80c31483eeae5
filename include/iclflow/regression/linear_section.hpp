#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iclflow/experiment/reduction_section.hpp"
#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/system.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/regression/linear_simulation.hpp"

namespace iclflow {

/// One [[dynamics]] of linear attention.
struct LinearDynamics : ReductionDynamics {
  [[nodiscard]] DynamicsPart part() const;
};

/// A regression experiment with attention = "linear".
struct LinearPlan {
  LinearContexts contexts{};
  FullLinearLayout layout{};
  std::string preset = "aligned";
  double scale = 1e-2;
  std::uint64_t seed = 1;     ///< of the random start
  double perturbation = 0.0;  ///< standard deviation added to every full parameter, keyed by the member's seed
  bool logarithmic_time = false;
  std::vector<LinearDynamics> dynamics{};

  /// Reduced weights, and a member's full ones.
  [[nodiscard]] Eigen::VectorXd start() const;
  [[nodiscard]] Eigen::VectorXd full_start(std::uint64_t member) const;
};

/// Reads [problem], [initial] and [[dynamics]]. Throws InputError.
[[nodiscard]] LinearPlan read_linear_plan(const Section& root);
void resolve(const LinearPlan& plan, TomlText& text);

}  // namespace iclflow
