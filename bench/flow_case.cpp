#include "bench/flow_case.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>

#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

FlowCase::FlowCase(const nlohmann::json& entry)
    : closure(entry.value("closure", "large-context")), final_time(entry.value("final", 1.0)) {
  problem.heads = entry.at("heads");
  problem.task_dimensions = entry.at("dimensions").get<std::vector<int>>();
  problem.signal_variance.assign(problem.task_dimensions.size(), 1.0);
  problem.context_length = entry.at("length");
  problem.noise_variance = entry.value("noise", 0.0);
  problem.parametrisation = entry.value("split", false) ? Parametrisation::split : Parametrisation::merged;
  if (entry.value("response", "") == "unit") problem.response_scale = ResponseScale::unit;
  const double scale = entry.at("scale");
  start = entry.value("start", "random") == "aligned" ? aligned_start(problem, scale, 2.0)
                                                      : random_start(problem, scale, 3);
  if (entry.value("uneven", false)) {
    for (Eigen::Index k = 0; k < start.omega.cols(); ++k) start.omega.col(k) *= 1.0 + 0.02 * static_cast<double>(k);
  }
  start.imbalance_mu.setConstant(entry.value("imbalance", 0.0));
  start.imbalance_omega.setConstant(entry.value("imbalance", 0.0));
}

SpectralFlow FlowCase::flow(bool full) const { return {problem, start, closure, full}; }

}  // namespace iclflow
