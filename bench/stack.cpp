// Loss and gradient of a stack of causal linear attention layers at the sizes of the mesa-optimization paper.
// bench/mesa runs it against PyTorch.
#include "iclflow/mesa/stack.hpp"

#include <benchmark/benchmark.h>

#include <memory>

#include "iclflow/mesa/sequences.hpp"
#include "iclflow/random/stream.hpp"

namespace {

iclflow::StackBatch paper_batch(std::size_t count) {
  const iclflow::SequenceProblem problem;
  const iclflow::SequenceSet sequences = draw_sequences(problem, 1, iclflow::Stream::training, 0, 0, count);
  iclflow::StackBatch batch;
  batch.count = count;
  batch.length = problem.length;
  for (std::size_t i = 0; i < count; ++i) {
    const double* const first = sequences.state(i, 0);
    const auto size = static_cast<std::ptrdiff_t>(problem.length) * problem.state_dimension;
    batch.inputs.insert(batch.inputs.end(), first, first + size);
    batch.targets.insert(batch.targets.end(), first + problem.state_dimension, first + problem.state_dimension + size);
  }
  return batch;
}

/// Arguments: layers, heads, threads.
void stack_gradient(benchmark::State& state, iclflow::StackPrecision precision, iclflow::LayerKind kind) {
  iclflow::StackShape shape;
  shape.layers.assign(static_cast<std::size_t>(state.range(0)), kind);
  shape.heads = static_cast<int>(state.range(1));
  shape.clip = 1.5;
  const std::unique_ptr<iclflow::Stack> stack = make_stack(shape, precision, static_cast<int>(state.range(2)));
  const iclflow::StackBatch batch = paper_batch(256);
  iclflow::NormalStream normal({.seed = 1, .stream = iclflow::Stream::initial});
  Eigen::VectorXd parameters(stack->layout().size);
  for (double& value : parameters) value = 0.05 * normal();
  Eigen::VectorXd gradient(parameters.size());
  for (auto _ : state) benchmark::DoNotOptimize(stack->gradient(parameters, batch, gradient));
}
void sizes(benchmark::internal::Benchmark* bench) {
  for (const int threads : {1, 2}) bench->Args({1, 2, threads})->Args({2, 4, threads})->Args({6, 4, threads});
  bench->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK_CAPTURE(stack_gradient, double, iclflow::StackPrecision::double_precision, iclflow::LayerKind::linear)
    ->Apply(sizes);
BENCHMARK_CAPTURE(stack_gradient, single, iclflow::StackPrecision::single_precision, iclflow::LayerKind::linear)
    ->Apply(sizes);

}  // namespace
