#pragma once

#include <string>
#include <vector>

#include "iclflow/experiment/stepper_section.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// One [[dynamics]] of an experiment that compares a reduced flow with the training of all parameters.
struct ReductionDynamics {
  std::string name;
  std::string kind;             ///< "spectral-flow" | "attention"
  StepperOptions stepper{};     ///< spectral-flow
  double learning_rate = 0.0;   ///< attention: time of one step
  int batch = 0;                ///< attention: fresh contexts a step
  int evaluation_contexts = 0;  ///< attention: fixed set on which the loss is recorded
  std::vector<std::uint64_t> seeds{};

  [[nodiscard]] bool is_flow() const { return kind == "spectral-flow"; }
  /// Throws std::invalid_argument when a training cannot be sampled at these times.
  void check_times(const std::vector<double>& times) const;
  void resolve(TomlText& text) const;
};

/// Leaves keys of the system's own to be read, and finish() to be called. final_time, implicit: see read_stepper.
/// Throws InputError.
[[nodiscard]] ReductionDynamics read_reduction_dynamics(const Section& section, double final_time, bool implicit,
                                                        int default_batch);

/// Results of at least two samples: what can be drawn over time.
[[nodiscard]] std::vector<DynamicsResult> moving(const std::vector<DynamicsResult>& results);

}  // namespace iclflow
