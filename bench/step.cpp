// The two inner loops: one stochastic gradient step of the full simulation, and one right-hand side of the reduced
// flow. bench/step runs the first against NumPy and PyTorch, bench/growth both at growing sizes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "iclflow/reduction/embedding.hpp"
#include "iclflow/regression/simulation.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

namespace {

iclflow::Problem equal_tasks(int context_length, int dimension, int tasks, int heads) {
  iclflow::Problem problem;
  problem.context_length = context_length;
  problem.task_dimensions.assign(static_cast<std::size_t>(tasks), dimension / tasks);
  problem.signal_variance.assign(static_cast<std::size_t>(tasks), 1.0);
  problem.heads = heads;
  problem.noise_variance = 0.1;
  problem.response_scale = iclflow::ResponseScale::unit;
  return problem;
}

/// Arguments: L, d_x, d_y, H, batch, threads.
void gradient_step(benchmark::State& state, iclflow::Precision precision,
                   iclflow::GradientEstimator estimator = iclflow::GradientEstimator::tokens) {
  const auto argument = [&](int i) { return static_cast<int>(state.range(i)); };
  const iclflow::Problem problem = equal_tasks(argument(0), argument(1), argument(2), argument(3));
  const iclflow::WeightLayout layout = iclflow::WeightLayout::of(problem);
  const Eigen::VectorXd weights =
      iclflow::embed(problem, iclflow::rotations(problem), iclflow::aligned_start(problem, 0.1, 2.0));
  iclflow::SimulationOptions options;
  options.batch = argument(4);
  options.threads = argument(5);
  options.evaluation_contexts = 1;
  options.precision = precision;
  options.estimator = estimator;
  const auto descent = iclflow::make_descent(problem, layout, weights, options);
  Eigen::VectorXd gradient(weights.size());
  std::uint64_t step = 0;
  for (auto _ : state) {
    descent->gradient(step++, weights, gradient);
    benchmark::DoNotOptimize(gradient.data());
  }
  state.counters["contexts_per_second"] =
      benchmark::Counter(static_cast<double>(options.batch), benchmark::Counter::kIsIterationInvariantRate);
}
void sizes(benchmark::internal::Benchmark* bench) {
  for (const int threads : {1, 2}) {
    bench->Args({100, 5, 1, 2, 1000, threads})
        ->Args({40, 10, 2, 2, 1000, threads})
        ->Args({100, 50, 2, 4, 1000, threads})
        ->Args({100, 20, 4, 4, 1000, threads})
        ->Args({256, 64, 4, 8, 256, threads});
  }
  bench->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(gradient_step, double, iclflow::Precision::double_precision)->Apply(sizes);
BENCHMARK_CAPTURE(gradient_step, single, iclflow::Precision::single_precision)->Apply(sizes);

/// One size after the other doubled from a common base.
void growing(benchmark::internal::Benchmark* bench) {
  const std::vector<std::int64_t> base = {256, 64, 4, 4, 256, 1};
  const std::vector<std::int64_t> first = {64, 16, 1, 1, 64, 1};
  bench->Args(base);
  for (std::size_t k = 0; k < 5; ++k) {
    for (std::int64_t size = first[k]; size <= 16 * first[k]; size *= 2) {
      std::vector<std::int64_t> arguments = base;
      arguments[k] = size;
      if (arguments != base) bench->Args(arguments);
    }
  }
  bench->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(gradient_step, growth_tokens, iclflow::Precision::single_precision)->Apply(growing);
BENCHMARK_CAPTURE(gradient_step, growth_score_space, iclflow::Precision::single_precision,
                  iclflow::GradientEstimator::score_space)
    ->Apply(growing);

/// The largest case of bench/growth: a few steps of a layer with 4096 covariates.
BENCHMARK_CAPTURE(gradient_step, largest, iclflow::Precision::single_precision)
    ->Args({4096, 4096, 8, 8, 64, 2})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Arguments: d_x, I, H. All d_x coordinates are kept: n = H (d_x + I) variables.
void large_context_velocity(benchmark::State& state) {
  const auto argument = [&](int i) { return static_cast<int>(state.range(i)); };
  const iclflow::Problem problem = equal_tasks(1000, argument(0), argument(1), argument(2));
  const iclflow::SpectralFlow flow(problem, iclflow::aligned_start(problem, 0.1, 2.0), "large-context", true);
  const Eigen::VectorXd y = flow.initial();
  Eigen::VectorXd rate(y.size());
  for (auto _ : state) {
    flow.velocity(y, rate);
    benchmark::DoNotOptimize(rate.data());
  }
}
BENCHMARK(large_context_velocity)
    ->Args({64, 8, 8})
    ->Args({256, 8, 8})
    ->Args({1024, 8, 8})
    ->Args({4096, 8, 8})
    ->Args({1024, 8, 2})
    ->Args({1024, 8, 4})
    ->Args({1024, 8, 16})
    ->Args({1024, 8, 32})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
