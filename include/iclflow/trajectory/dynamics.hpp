#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <vector>

#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// Something with an initial state and observables; it moves by a velocity (OdeSystem) or by steps (DescentSystem).
class Dynamics {
 public:
  virtual ~Dynamics() = default;
  [[nodiscard]] virtual Eigen::VectorXd initial() const = 0;
  /// Declares this dynamics' observables in an empty trajectory.
  virtual void declare(Trajectory& trajectory) const = 0;
  /// Appends one row to every observable (the caller appends the time).
  virtual void observe(const Eigen::VectorXd& state, Trajectory& trajectory) const = 0;
  /// Value of an event quantity: "loss", "mu[h][i]", "omega[h][i]" (block mean). Throws std::invalid_argument for an
  /// unknown one.
  [[nodiscard]] virtual double quantity(const std::string& name, const Eigen::VectorXd& state) const = 0;
  /// Name of entry i of the state for messages, e.g. "mu[0][1]". Default: "state[i]".
  [[nodiscard]] virtual std::string component(Eigen::Index i) const;
};

/// Autonomous ordinary differential equation y' = velocity(y) in the coordinates it is integrated in.
class OdeSystem : public Dynamics {
 public:
  /// May throw std::domain_error where it is not defined: a step that gets there is rejected and shortened.
  virtual void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const = 0;
  /// Largest local error of each component that a step may make. Coordinates that are logarithms override this,
  /// so that tolerances speak of the physical variable. Default: absolute + relative * |y|.
  virtual void error_scale(const Eigen::VectorXd& y, double absolute, double relative, Eigen::VectorXd& scale) const;
  [[nodiscard]] virtual bool has_jacobian() const { return false; }
  /// d velocity / d y. Throws std::logic_error unless has_jacobian().
  virtual void jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const;
  /// (d velocity / d y) direction. Throws std::logic_error unless has_jacobian(). Default: by jacobian().
  virtual void jacobian_product(const Eigen::VectorXd& y, const Eigen::VectorXd& direction,
                                Eigen::VectorXd& product) const;
  /// d velocity / d y = -diag(scale) matrix diag(1 / scale) with a symmetric matrix, as for a gradient flow. False
  /// where there is no such form; has_jacobian() may hold nevertheless.
  virtual bool symmetrised_jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& matrix, Eigen::VectorXd& scale) const;
};

/// Discrete descent theta <- theta - learning_rate * gradient(step, theta); one step advances the clock by the learning
/// rate.
class DescentSystem : public Dynamics {
 public:
  /// Gradient estimate for step number `step`; a pure function of (step, theta): same bits whatever ran before.
  virtual void gradient(std::uint64_t step, const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) const = 0;
};

}  // namespace iclflow
