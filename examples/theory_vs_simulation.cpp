// Theory and simulation of one problem on one clock.
//
//   theory:      mu' = -m(mu) d ell / d mu,  omega' = -m(omega) d ell / d omega         (the reduced flow)
//   simulation:  theta <- theta - eta * gradient of the loss of fresh contexts at theta  (all of K, Q, V, O)
//
// Both start from the same weights: the simulation from the embedding of the theory's start. A step of rate eta takes
// the time eta. The gap is the mean over time of |loss_simulation - loss_theory| / loss_theory(0).
#include <cmath>
#include <cstdio>
#include <vector>

#include "iclflow/analysis/comparison.hpp"
#include "iclflow/integrate/descent.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/regression/simulation.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

int main() {
  // 1. A tiny problem: two tasks of four covariates, two heads, L = 200 tokens a context.
  iclflow::Problem problem;
  problem.heads = 2;
  problem.task_dimensions = {4, 4};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 200;
  problem.response_scale = iclflow::ResponseScale::unit;
  iclflow::validate(problem);
  const iclflow::InitialState start = iclflow::aligned_start(problem, 0.1, 3.0);

  // 2. The theory, integrated to t = 2.
  std::vector<double> times;
  for (int k = 0; k <= 20; ++k) times.push_back(0.1 * k);
  const iclflow::SpectralFlow flow(problem, start, "large-context");
  iclflow::DynamicsResult theory;
  theory.members.push_back(iclflow::integrate(flow, times, iclflow::StepperOptions{}).trajectory);

  // 3. The simulation: the same start embedded in all the weights, 200 steps of 200 fresh contexts, two seeds.
  const iclflow::WeightLayout layout = iclflow::WeightLayout::of(problem);
  const Eigen::VectorXd weights = iclflow::embed(problem, iclflow::rotations(problem), start);
  iclflow::DynamicsResult simulation;
  for (const std::uint64_t seed : {1U, 2U}) {
    iclflow::SimulationOptions options;
    options.seed = seed;
    options.batch = 200;
    options.evaluation_contexts = 5000;
    const auto descent = iclflow::make_descent(problem, layout, weights, options);
    simulation.seeds.push_back(seed);
    simulation.members.push_back(iclflow::descend(*descent, 0.01, times).trajectory);
  }

  // 4. Side by side, and the gap with the standard error over seeds.
  const iclflow::Band band = iclflow::seed_band(simulation, "loss");
  const std::vector<double>& loss = theory.members.front()["loss"].values;
  for (std::size_t k = 0; k < times.size(); k += 2)
    std::printf("t = %4.1f   theory %7.4f   simulation %7.4f +- %.4f\n", times[k], loss[k], band.mean[k],
                band.standard_error[k]);
  const iclflow::Comparison gap = iclflow::compare(theory, simulation, loss.back());
  std::printf("loss gap %.4f +- %.4f\n", gap.loss_gap.value, gap.loss_gap.standard_error.value_or(NAN));
}
