#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/problem/spectral_state.hpp"

namespace iclflow {

/// A closure: the population loss ell = (1/2) E |yhat - y_q|^2 as a function of (mu, omega), and its derivatives
/// (theory: eq:loss).
///
/// States are flat (mu H x I row-major, omega H x K row-major) over the Coordinates the object was built with; the
/// derivative with respect to a coordinate of multiplicity w is the total one (w times that of a single direction).
class PopulationLoss {
 public:
  virtual ~PopulationLoss() = default;
  [[nodiscard]] virtual double value(const Eigen::VectorXd& state) const = 0;
  virtual void gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const = 0;
  /// Hessian times direction.
  virtual void hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                              Eigen::VectorXd& product) const = 0;
  /// ell_i of each task; sums to value().
  [[nodiscard]] virtual Eigen::VectorXd by_task(const Eigen::VectorXd& state) const = 0;
};

/// Names that make_population_loss takes: "large-context" (C0).
[[nodiscard]] const std::vector<std::string_view>& closures();
/// Names that are part of the plan but cannot be made yet: "finite-dimension" and "sampled".
[[nodiscard]] const std::vector<std::string_view>& planned_closures();
/// Throws std::invalid_argument for a name that is unknown or only planned; the sentence says which.
[[nodiscard]] std::unique_ptr<PopulationLoss> make_population_loss(std::string_view closure, const Problem& problem,
                                                                   const Coordinates& coordinates);

}  // namespace iclflow
