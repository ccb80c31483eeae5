// The reduced flow of multi-head softmax attention: H (d_x + d_y) numbers instead of all weights.
//
//   mu' = -m(mu) d ell / d mu,   omega' = -m(omega) d ell / d omega,   ell = (1/2) E |yhat - y_q|^2
//
// mu (head, task) says how strongly a head writes a task's answer, omega (head, coordinate) how sharply it compares
// covariates. Two tasks and two heads, each head a little ahead on its own task: the loss waits on a plateau, then
// falls at once when the heads emerge, and ends at the limit of dedicated heads.
#include <cmath>
#include <cstdio>
#include <vector>

#include "iclflow/analysis/allocation.hpp"
#include "iclflow/analysis/phases.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

int main() {
  // 1. The problem: d_x = 20 covariates in two blocks, one response each, L = 500 tokens a context.
  iclflow::Problem problem;
  problem.heads = 2;
  problem.task_dimensions = {10, 10};
  problem.signal_variance = {1.0, 1.0};
  problem.context_length = 500;
  problem.response_scale = iclflow::ResponseScale::unit;
  iclflow::validate(problem);

  // 2. Where it starts: mu = omega = 0.05, a head's own task twice that.
  const iclflow::InitialState start = iclflow::aligned_start(problem, 0.05, 2.0);

  // 3. Population loss (here for large contexts) x mobility (here of split weights), and the times to look at.
  const iclflow::SpectralFlow flow(problem, start, "large-context");
  std::vector<double> times;
  for (int k = 0; k <= 160; ++k) times.push_back(0.05 * k);

  // 4. Integrate.
  const iclflow::Outcome run = iclflow::integrate(flow, times, iclflow::StepperOptions{});
  if (run.status != iclflow::Status::completed) {
    std::fprintf(stderr, "%s\n", run.message.c_str());
    return 1;
  }

  // 5. What happened: the loss, the three times of emergence, which head took which task.
  const std::vector<double>& loss = run.trajectory["loss"].values;
  for (std::size_t k = 0; k < times.size(); k += 10) std::printf("t = %5.1f   loss = %8.5f\n", times[k], loss[k]);
  const iclflow::Phases phases = iclflow::find_phases(run.trajectory.times, loss, loss.back());
  std::printf("warm-up ends %.3f, emergence at %.3f, over at %.3f\n", phases.warm_up_end.value_or(NAN),
              phases.emergence_time.value_or(NAN), phases.emergence_end.value_or(NAN));
  const auto limit = iclflow::dedicated_limit(problem);
  std::printf("limit of dedicated heads: loss = %.5f\n", limit ? limit->loss : NAN);
}
