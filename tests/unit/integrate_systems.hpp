#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow_tests {

/// A vector field given by functions. Observables: loss (= half the squared norm) and y (coordinate); quantities "loss"
/// and "y[i]".
class Field : public iclflow::OdeSystem {
 public:
  using Velocity = std::function<void(const Eigen::VectorXd&, Eigen::VectorXd&)>;
  using Jacobian = std::function<void(const Eigen::VectorXd&, Eigen::MatrixXd&)>;

  Field(Eigen::VectorXd start, Velocity velocity, Jacobian jacobian = {})
      : start_(std::move(start)), velocity_(std::move(velocity)), jacobian_(std::move(jacobian)) {}

  [[nodiscard]] Eigen::VectorXd initial() const override { return start_; }
  void declare(iclflow::Trajectory& run) const override {
    run.declare("loss", "half the squared norm");
    run.declare("y", "state", {"coordinate"}, {static_cast<std::size_t>(start_.size())});
  }
  void observe(const Eigen::VectorXd& y, iclflow::Trajectory& run) const override {
    run.append(0, quantity("loss", y));
    run.append(1, std::span<const double>(y.data(), static_cast<std::size_t>(y.size())));
  }
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& y) const override {
    if (name == "loss") return 0.5 * y.squaredNorm();
    for (Eigen::Index i = 0; i < y.size(); ++i) {
      if (name == component(i)) return y[i];
    }
    throw std::invalid_argument("unknown quantity '" + name + "'");
  }
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override {
    ++calls;
    velocity_(y, rate);
  }
  [[nodiscard]] bool has_jacobian() const override { return static_cast<bool>(jacobian_); }
  void jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const override {
    derivative.setZero(y.size(), y.size());
    jacobian_(y, derivative);
  }
  [[nodiscard]] std::string component(Eigen::Index i) const override { return "y[" + std::to_string(i) + "]"; }

  mutable std::uint64_t calls = 0;

 private:
  Eigen::VectorXd start_;
  Velocity velocity_;
  Jacobian jacobian_;
};

/// A logistic curve beside a rotation that it does not feel: nonlinear, exactly solvable.
/// y0' = y0 (1 - y0), y1' = y2, y2' = -y1, from (0.1, 1, 0).
inline Field logistic_and_rotation() {
  return {
      Eigen::Vector3d(0.1, 1.0, 0.0),
      [](const Eigen::VectorXd& y, Eigen::VectorXd& rate) { rate = Eigen::Vector3d(y[0] * (1.0 - y[0]), y[2], -y[1]); },
      [](const Eigen::VectorXd& y, Eigen::MatrixXd& j) {
        j(0, 0) = 1.0 - 2.0 * y[0];
        j(1, 2) = 1.0;
        j(2, 1) = -1.0;
      }};
}

inline Eigen::Vector3d logistic_and_rotation_at(double t) {
  return {1.0 / (1.0 + 9.0 * std::exp(-t)), std::cos(t), -std::sin(t)};
}

/// Sample `sample` of observable y.
inline Eigen::VectorXd state_at(const iclflow::Trajectory& run, std::size_t sample) {
  const std::span<const double> row = run["y"].at(sample);
  return Eigen::Map<const Eigen::VectorXd>(row.data(), static_cast<Eigen::Index>(row.size()));
}

/// Every number of a trajectory with all its digits, so that two runs can be compared bit for bit.
inline std::string all_digits(const iclflow::Trajectory& run) {
  std::ostringstream text;
  text << std::hexfloat;
  for (const double t : run.times) text << t << ' ';
  for (const auto& observable : run.observables) {
    text << '\n' << observable.name;
    for (const double value : observable.values) text << ' ' << value;
  }
  for (const auto& event : run.events) text << '\n' << event.quantity << ' ' << event.direction << ' ' << event.time;
  return text.str();
}

}  // namespace iclflow_tests
