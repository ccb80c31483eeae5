#pragma once

#include <stdexcept>
#include <vector>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/integrate/descent.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/regression/simulation.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

/// Theory and simulation of one problem from one start on one clock.
namespace both {

inline iclflow::DynamicsResult theory(const iclflow::Problem& problem, const iclflow::InitialState& start,
                                      const std::vector<double>& times) {
  const iclflow::SpectralFlow flow(problem, start, "large-context");
  iclflow::Outcome outcome = iclflow::integrate(flow, times, {});
  if (outcome.status != iclflow::Status::completed) throw std::runtime_error(outcome.message);
  iclflow::DynamicsResult result;
  result.name = "theory";
  result.members.push_back(std::move(outcome.trajectory));
  return result;
}

inline iclflow::DynamicsResult simulation(const iclflow::Problem& problem, const iclflow::InitialState& start,
                                          const std::vector<double>& times, double learning_rate,
                                          iclflow::SimulationOptions options, const std::vector<std::uint64_t>& seeds) {
  const iclflow::WeightLayout layout = iclflow::WeightLayout::of(problem);
  const Eigen::VectorXd weights = iclflow::embed(problem, iclflow::rotations(problem), start);
  iclflow::DynamicsResult result;
  result.name = "simulation";
  result.seeds = seeds;
  for (const std::uint64_t seed : seeds) {
    options.seed = seed;
    const auto descent = iclflow::make_descent(problem, layout, weights, options);
    iclflow::Outcome outcome = iclflow::descend(*descent, learning_rate, times);
    if (outcome.status != iclflow::Status::completed) throw std::runtime_error(outcome.message);
    result.members.push_back(std::move(outcome.trajectory));
  }
  return result;
}

inline std::vector<double> linear_times(double last, int samples) {
  std::vector<double> times;
  for (int k = 0; k <= samples; ++k) times.push_back(last * k / samples);
  return times;
}

}  // namespace both
