#include "last_loss.hpp"

#include <fmt/format.h>

#include <cmath>
#include <exception>

namespace iclflow {

std::string last_finite_loss(const Dynamics& dynamics, const Eigen::VectorXd& state, const Trajectory& trajectory) {
  try {
    const double loss = dynamics.quantity("loss", state);
    if (std::isfinite(loss)) return fmt::format("{:.10g}", loss);
  } catch (const std::exception&) {
    // no such quantity, or the state is outside its domain: look at what was sampled
  }
  if (trajectory.has("loss") && trajectory["loss"].width() == 1) {
    const std::vector<double>& values = trajectory["loss"].values;
    for (auto value = values.rbegin(); value != values.rend(); ++value) {
      if (std::isfinite(*value)) return fmt::format("{:.10g}", *value);
    }
  }
  return "unknown";
}

}  // namespace iclflow
