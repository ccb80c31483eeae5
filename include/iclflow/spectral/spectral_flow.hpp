#pragma once

#include <memory>
#include <string_view>

#include "iclflow/problem/initial.hpp"
#include "iclflow/spectral/population_loss.hpp"
#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

/// The reduced gradient flow: population loss (closure) x mobility (parametrisation), d x / dt = -m(x) d ell / d x.
///
/// Integrated in sign-safe coordinates (theory/04-flow.md): x itself when merged, log|x| for a balanced split product,
/// arsinh for an imbalanced one. A start constant on blocks is integrated in 2 H I variables.
/// Observables: loss, loss_by_task (task), mu (head, task), omega_block (head, task), omega (head, coordinate), and
/// loss_standard_error (of the sampling) with a closure that has one.
class SpectralFlow final : public OdeSystem {
 public:
  /// full_coordinates = true keeps all d_x coordinates.
  SpectralFlow(const Problem& problem, const InitialState& start, const LossFactory& loss,
               bool full_coordinates = false);
  /// A closure with a closed form. Throws std::invalid_argument for another name.
  SpectralFlow(const Problem& problem, const InitialState& start, std::string_view closure,
               bool full_coordinates = false);
  ~SpectralFlow() override;

  [[nodiscard]] Eigen::VectorXd initial() const override;
  void declare(Trajectory& trajectory) const override;
  void observe(const Eigen::VectorXd& y, Trajectory& trajectory) const override;
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& y) const override;
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override;
  void error_scale(const Eigen::VectorXd& y, double absolute, double relative, Eigen::VectorXd& scale) const override;
  [[nodiscard]] bool has_jacobian() const override { return true; }
  void jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const override;
  void jacobian_product(const Eigen::VectorXd& y, const Eigen::VectorXd& direction,
                        Eigen::VectorXd& product) const override;
  bool symmetrised_jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& matrix, Eigen::VectorXd& scale) const override;
  [[nodiscard]] std::string component(Eigen::Index i) const override;

  /// An event quantity besides those of users: positive inside the closure's domain, falls to zero on its edge.
  static constexpr const char* closure_margin = "closure_margin";
  /// Whether the closure has a domain that it can leave.
  [[nodiscard]] bool bounded() const;
  /// What is wrong with a state on the edge of the closure's domain or beyond, and what to do.
  [[nodiscard]] std::string beyond(const Eigen::VectorXd& y) const;

  [[nodiscard]] const Coordinates& coordinates() const;
  /// Integration coordinates -> flat (mu, omega).
  [[nodiscard]] Eigen::VectorXd products(const Eigen::VectorXd& y) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace iclflow
