#include "iclflow/mesa/training.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

namespace iclflow {

StackBatch batch_of(const SequenceSet& sequences) {
  StackBatch batch;
  batch.count = sequences.count;
  batch.length = sequences.length;
  const auto n = static_cast<std::size_t>(sequences.dimension);
  const std::size_t row = static_cast<std::size_t>(sequences.length) * n;
  batch.inputs.resize(sequences.count * row);
  batch.targets.resize(sequences.count * row);
  for (std::size_t s = 0; s < sequences.count; ++s) {
    std::copy_n(sequences.state(s, 0), row, batch.inputs.data() + s * row);
    std::copy_n(sequences.state(s, 1), row, batch.targets.data() + s * row);
  }
  return batch;
}

Eigen::VectorXd initial_parameters(const StackShape& shape, double deviation, std::uint64_t seed) {
  constexpr double late_forgetting = 4.0;
  const StackLayout layout = StackLayout::of(shape);
  Eigen::VectorXd parameters(layout.size);
  NormalStream normals({seed, Stream::initial, 0, 0});
  for (double& value : parameters) value = deviation * normals();
  for (std::size_t l = 0; l < shape.layers.size(); ++l) {
    if (shape.layers[l] != LayerKind::mesa) continue;
    parameters.segment(layout.layers[l].rho, shape.heads).setZero();
    for (int h = 0; shape.forgetting && h < shape.heads; ++h) {
      parameters[layout.layers[l].gate + h * (shape.width + 1) + shape.width] = late_forgetting;
    }
  }
  return parameters;
}

StackTraining::StackTraining(const SequenceProblem& problem, const StackShape& shape, const TrainingOptions& options,
                             std::uint64_t seed, int threads, bool keep_parameters)
    : problem_(problem),
      options_(options),
      seed_(seed),
      keep_parameters_(keep_parameters),
      stack_(make_stack(shape, options.precision, threads)),
      team_(threads),
      evaluation_(batch_of(draw_sequences(problem, options.evaluation_seed, Stream::evaluation, 0, 0,
                                          static_cast<std::size_t>(options.evaluation_sequences)))) {}

Eigen::VectorXd StackTraining::initial() const {
  return initial_parameters(stack_->shape(), options_.initial_deviation, seed_);
}

void StackTraining::declare(Trajectory& trajectory) const {
  trajectory.declare("loss", "mean over t of half the squared error of the next state, on the evaluation set");
  if (!keep_parameters_) return;
  trajectory.declare("parameters", "all weights of the stack", {"parameter"},
                     {static_cast<std::size_t>(stack_->layout().size)});
}

void StackTraining::observe(const Eigen::VectorXd& parameters, Trajectory& trajectory) const {
  trajectory.append(0, quantity("loss", parameters));
  if (keep_parameters_) {
    trajectory.append(1, std::span<const double>(parameters.data(), static_cast<std::size_t>(parameters.size())));
  }
}

double StackTraining::quantity(const std::string& name, const Eigen::VectorXd& parameters) const {
  if (name != "loss") throw std::invalid_argument("unknown quantity '" + name + "'");
  return stack_->loss(parameters, evaluation_);
}

StackBatch StackTraining::draw(std::uint64_t step) const {
  constexpr std::size_t piece = 16;
  const auto batch = static_cast<std::size_t>(options_.batch);
  const std::size_t pieces = (batch + piece - 1) / piece;
  std::vector<StackBatch> parts(pieces);
  team_.run(pieces, [&](std::size_t part, std::size_t) {
    const std::size_t first = part * piece;
    parts[part] = batch_of(draw_sequences(problem_, seed_, Stream::sequences, static_cast<std::uint32_t>(step), first,
                                          std::min(piece, batch - first)));
  });
  StackBatch whole;
  whole.length = problem_.length;
  for (const StackBatch& part : parts) {
    whole.count += part.count;
    whole.inputs.insert(whole.inputs.end(), part.inputs.begin(), part.inputs.end());
    whole.targets.insert(whole.targets.end(), part.targets.begin(), part.targets.end());
  }
  return whole;
}

void StackTraining::gradient(std::uint64_t step, const Eigen::VectorXd& parameters, Eigen::VectorXd& gradient) const {
  stack_->gradient(parameters, draw(step), gradient);
}

std::vector<double> recorded_steps(const TrainingOptions& options) {
  std::vector<double> steps;
  for (std::uint64_t step = 0; step < options.steps; step += options.record_every) {
    steps.push_back(static_cast<double>(step));
  }
  steps.push_back(static_cast<double>(options.steps));
  return steps;
}

}  // namespace iclflow
