// Cost of the gradient at equal standard error: CPU time of a context and variance that a context leaves in the
// gradient, by tokens and in score space. bench/gradient puts the answers beside the peers'.
//
// usage: iclflow_bench_gradient L d_x d_y H initial|emergence|final tokens|score-space single|double BATCH SECONDS
// The weights are those of the reduced flow from an aligned start. Prints one line of JSON: microseconds a context of
// each batch, and the trace of a context's covariance, over all weights and over those whose population gradient is not
// zero there by symmetry (K_X, Q_X, O, V_Y).
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "iclflow/attention/score_space_gradient.hpp"
#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/integrate/ode.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

namespace {

using namespace iclflow;

Problem equal_tasks(int context_length, int dimension, int tasks, int heads) {
  Problem problem;
  problem.context_length = context_length;
  problem.task_dimensions.assign(static_cast<std::size_t>(tasks), dimension / tasks);
  problem.signal_variance.assign(static_cast<std::size_t>(tasks), 1.0);
  problem.heads = heads;
  problem.noise_variance = 0.1;
  problem.response_scale = ResponseScale::unit;
  return problem;
}

/// At the start, where half of the loss that will go has gone, or at t = 200.
InitialState state(const Problem& problem, const std::string& when) {
  const InitialState start = aligned_start(problem, 0.05, 2.0);
  if (when == "initial") return start;
  const SpectralFlow flow(problem, start, "large-context", true);
  std::vector<double> times{0.0};
  for (int k = 0; k <= 4000; ++k) times.push_back(0.05 * (k + 1));
  const Outcome run = integrate(flow, times, StepperOptions{});
  const auto& loss = run.trajectory["loss"];
  const double half = 0.5 * (loss.at(0)[0] + loss.last()[0]);
  std::size_t at = times.size() - 1;
  for (std::size_t k = 0; when == "emergence" && k < times.size(); ++k) {
    if (loss.at(k)[0] < half) {
      at = k;
      break;
    }
  }
  const auto matrix = [&](const char* name) {
    const auto row = run.trajectory[name].at(at);
    return Matrix(
        Eigen::Map<const Matrix>(row.data(), problem.heads, static_cast<Eigen::Index>(row.size()) / problem.heads));
  };
  return balanced_start(problem, matrix("mu"), matrix("omega"));
}

using Gradient = std::function<ActingWeights(const ActingWeights&, std::uint32_t step)>;

template <typename T>
Gradient by_tokens(const Problem& problem, const WeightLayout& layout, ThreadTeam& team, std::size_t batch) {
  const auto estimator = std::make_shared<TokenEstimator<T>>(problem, layout, team);
  return [=](const ActingWeights& weights, std::uint32_t step) {
    return (*estimator)(weights, {1, Stream::training, step, 0}, batch).gradient;
  };
}

template <typename T>
Gradient in_score_space(const Problem& problem, const WeightLayout& layout, ThreadTeam& team, std::size_t batch) {
  const auto estimator = std::make_shared<ScoreSpaceGradient<T>>(problem, layout, rotations(problem), team);
  return [=](const ActingWeights& weights, std::uint32_t step) {
    return (*estimator)(weights, {1, Stream::score_space, step, 0}, batch).gradient;
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 10) return 2;
  const auto number = [&](int k) { return std::atoi(argv[k]); };
  const std::string when = argv[5];
  const bool tokens = std::string(argv[6]) == "tokens";
  const bool single = std::string(argv[7]) == "single";
  const auto batch = static_cast<std::size_t>(number(8));
  const double seconds = std::atof(argv[9]);
  const Problem problem = equal_tasks(number(1), number(2), number(3), number(4));
  const WeightLayout layout = WeightLayout::of(problem);
  const Eigen::VectorXd weights = embed(problem, rotations(problem), state(problem, when));
  ThreadTeam team(1);
  const Gradient gradient =
      tokens ? (single ? by_tokens<float> : by_tokens<double>)(problem, layout, team, batch)
             : (single ? in_score_space<float> : in_score_space<double>)(problem, layout, team, batch);
  using Clock = std::chrono::steady_clock;
  std::vector<double> each;
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(weights.size());
  Eigen::VectorXd squares = sum;
  Eigen::VectorXd slope;
  const auto begin = Clock::now();
  for (std::uint32_t step = 0; step < 8 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds;
       ++step) {
    const auto from = Clock::now();
    const ActingWeights blocks = acting(layout, weights);
    pull_back(layout, weights, gradient(blocks, step), slope);
    each.push_back(1e6 * std::chrono::duration<double>(Clock::now() - from).count() / static_cast<double>(batch));
    sum += slope;
    squares += slope.cwiseAbs2();
  }
  const auto count = static_cast<double>(each.size());
  Eigen::VectorXd variances = (squares - sum.cwiseAbs2() / count) / (count - 1.0) * static_cast<double>(batch);
  const double variance = variances.sum();
  for (int h = 0; h < layout.heads; ++h) {
    HeadView<double> at = head(layout, variances, h);
    at.k.rightCols(layout.tasks).setZero();
    at.v.leftCols(layout.dimension).setZero();
  }
  fmt::print("{{\"microseconds\": [{:.6g}], \"variance\": {:.6g}, \"acting_variance\": {:.6g}}}\n",
             fmt::join(each, ", "), variance, variances.sum());
  return 0;
}
