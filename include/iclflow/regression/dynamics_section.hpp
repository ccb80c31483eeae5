#pragma once

#include <string>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/system.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/closures.hpp"
#include "iclflow/regression/simulation.hpp"

namespace iclflow {

enum class Method { reduced_flow, sgd, gradient_flow, fixed };

/// One [[dynamics]] of a regression experiment.
struct RegressionDynamics {
  std::string name;
  std::string kind;  ///< "spectral-flow" | "attention" | "fixed"
  Method method = Method::reduced_flow;
  Closure closure{};         ///< reduced flow; threads are set per run
  std::string estimator;     ///< attention
  StepperOptions stepper{};  ///< reduced flow and gradient flow
  double learning_rate = 0.0;
  SimulationOptions simulation{};  ///< attention and fixed; seed and threads are set per run
  std::vector<std::uint64_t> seeds{};

  [[nodiscard]] DynamicsPart part() const;
  void resolve(TomlText& text) const;
};

/// final_time: the default of maximum_step, a longer one has no meaning; 0 when [time] is absent. Throws InputError.
[[nodiscard]] RegressionDynamics read_dynamics(const Section& section, double final_time);

}  // namespace iclflow
