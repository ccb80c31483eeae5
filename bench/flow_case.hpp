#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "iclflow/spectral/spectral_flow.hpp"

namespace iclflow {

/// One entry of bench/flow_cases.json. Defaults: merged, random start, response scale d^-1/2, no noise, no imbalance,
/// large-context closure. "uneven" lets omega vary within blocks.
struct FlowCase {
  explicit FlowCase(const nlohmann::json& entry);
  [[nodiscard]] SpectralFlow flow(bool full) const;

  Problem problem;
  InitialState start;
  std::string closure;
  double final_time = 0.0;
};

/// CVODE's BDF with its Krylov solver on the same velocity, Jacobian times vector by the closure's Hessian product, at
/// the library's default tolerances. Empty object where the program was built without SUNDIALS.
[[nodiscard]] nlohmann::json integrate_by_cvode(const FlowCase& flow_case, bool full);

}  // namespace iclflow
