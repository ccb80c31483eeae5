#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "iclflow/reduction/closures.hpp"

/// Starts on which every law of the reduced flow is tested: nothing equal, nothing zero, nothing of one sign.
namespace spectral_cases {

struct Case {
  std::string name;
  iclflow::Problem problem;
  iclflow::InitialState start;
  iclflow::Closure closure{};

  [[nodiscard]] iclflow::SpectralFlow flow(bool full_coordinates = false) const {
    return iclflow::make_flow(problem, start, closure, full_coordinates);
  }
  [[nodiscard]] std::unique_ptr<iclflow::PopulationLoss> loss(const iclflow::Coordinates& coordinates) const {
    return iclflow::make_population_loss(closure, problem, coordinates);
  }
  /// A sampled closure obeys a symmetry of the data law in the mean over its contexts only.
  [[nodiscard]] bool is_sampled() const { return closure.name == "sampled"; }
};

/// Unequal blocks, powers and noise, H above I; omega full or constant on blocks, split products balanced or not.
inline Case make_case(std::string name, iclflow::Parametrisation parametrisation, bool blocks, double imbalance) {
  iclflow::Problem problem;
  problem.heads = 3;
  problem.task_dimensions = {2, 4};
  problem.context_length = 30;
  problem.noise_variance = 0.3;
  problem.signal_variance = {1.0, 2.5};
  problem.parametrisation = parametrisation;
  if (parametrisation == iclflow::Parametrisation::split) {
    problem.score_scale = iclflow::ScoreScale::inverse_sqrt_embedding;
  }
  iclflow::InitialState start = iclflow::random_start(problem, 0.4, 7);
  if (!blocks) {
    for (Eigen::Index h = 0; h < start.omega.rows(); ++h) {
      for (Eigen::Index k = 0; k < start.omega.cols(); ++k) {
        start.omega(h, k) *= 1.0 + 0.1 * static_cast<double>(k) - 0.05 * static_cast<double>(h);
      }
    }
  }
  start.imbalance_mu.setConstant(imbalance);
  start.imbalance_omega.setConstant(-0.5 * imbalance);
  return {std::move(name), std::move(problem), std::move(start), {}};
}

inline std::vector<Case> of_large_context() {
  using iclflow::Parametrisation;
  return {make_case("merged, blocks", Parametrisation::merged, true, 0.0),
          make_case("merged, full", Parametrisation::merged, false, 0.0),
          make_case("balanced, blocks", Parametrisation::split, true, 0.0),
          make_case("balanced, full", Parametrisation::split, false, 0.0),
          make_case("imbalanced, blocks", Parametrisation::split, true, 0.3),
          make_case("imbalanced, full", Parametrisation::split, false, 0.3)};
}

/// The same cases with every closure that is registered, inside its domain.
inline std::vector<Case> all() {
  std::vector<Case> cases;
  for (const auto closure : iclflow::closures()) {
    for (Case c : of_large_context()) {
      c.name += fmt::format(", {}", closure);
      c.closure = {std::string(closure), {iclflow::SampledLoss::smallest, 5, 1}};
      if (closure == "finite-dimension") c.start.omega *= 0.35;  // omega up to 1 elsewhere
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

/// One classical Runge-Kutta step of any velocity, independent of the library's drivers.
template <typename Velocity>
void runge_kutta_step(const Velocity& velocity, double step, Eigen::VectorXd& y) {
  Eigen::VectorXd k1;
  Eigen::VectorXd k2;
  Eigen::VectorXd k3;
  Eigen::VectorXd k4;
  velocity(y, k1);
  velocity(Eigen::VectorXd(y + 0.5 * step * k1), k2);
  velocity(Eigen::VectorXd(y + 0.5 * step * k2), k3);
  velocity(Eigen::VectorXd(y + step * k3), k4);
  y += step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
}

template <typename Velocity>
Eigen::VectorXd runge_kutta(const Velocity& velocity, Eigen::VectorXd y, double time, int steps) {
  for (int n = 0; n < steps; ++n) runge_kutta_step(velocity, time / steps, y);
  return y;
}

inline Eigen::VectorXd evolve(const iclflow::OdeSystem& flow, double time, int steps) {
  return runge_kutta([&flow](const Eigen::VectorXd& y, Eigen::VectorXd& rate) { flow.velocity(y, rate); },
                     flow.initial(), time, steps);
}

}  // namespace spectral_cases
