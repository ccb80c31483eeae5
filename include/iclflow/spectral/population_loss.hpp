#pragma once

#include <functional>
#include <memory>
#include <optional>
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
  /// The whole Hessian. Default: one product per column.
  virtual void hessian(const Eigen::VectorXd& state, Eigen::MatrixXd& matrix) const;
  /// ell_i of each task; sums to value().
  [[nodiscard]] virtual Eigen::VectorXd by_task(const Eigen::VectorXd& state) const = 0;

  /// Positive where the closure holds, zero on the edge of its domain; infinite for a closure that always holds.
  /// The derivatives exist a little beyond the edge, so that an integrator can locate it; farther out they throw
  /// std::domain_error.
  [[nodiscard]] virtual double margin(const Eigen::VectorXd& state) const;
  /// What ends at the edge and what to do: "D_00 / L = 0.2 (..); use ..". Meaningful where margin() is not positive.
  [[nodiscard]] virtual std::string beyond(const Eigen::VectorXd& state) const;
  /// Standard error of value() where the closure is a Monte Carlo estimate; empty where it is a formula.
  [[nodiscard]] virtual std::optional<double> standard_error(const Eigen::VectorXd& state) const;
};

/// Makes the loss for the coordinates a flow has chosen.
using LossFactory = std::function<std::unique_ptr<PopulationLoss>(const Problem&, const Coordinates&)>;

/// Closures with a closed form, the names that the next function takes: "large-context" (C0), "finite-dimension" (C1).
/// All closures: reduction/closures.hpp.
[[nodiscard]] const std::vector<std::string_view>& closed_form_closures();
/// Throws std::invalid_argument for another name.
[[nodiscard]] std::unique_ptr<PopulationLoss> make_population_loss(std::string_view closure, const Problem& problem,
                                                                   const Coordinates& coordinates);

}  // namespace iclflow
