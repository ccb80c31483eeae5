#pragma once

#include <memory>
#include <vector>

#include "iclflow/attention/thread_team.hpp"
#include "iclflow/integrate/adam.hpp"
#include "iclflow/mesa/sequences.hpp"
#include "iclflow/mesa/stack.hpp"

namespace iclflow {

/// How a stack is trained to predict the next state.
struct TrainingOptions {
  std::uint64_t steps = 2400;
  int batch = 256;  ///< fresh sequences each step
  AdamOptions adam{{3e-4, 1000, 20000, 1e-5}, 0.9, 0.999, 1e-8, 0.05, 1.0};
  double initial_deviation = 2e-4;  ///< of the entries of all matrices; rho = 0
  StackPrecision precision = StackPrecision::single_precision;
  std::vector<std::uint64_t> seeds{1};
  std::uint64_t record_every = 100;  ///< steps
  int evaluation_sequences = 2048;   ///< fixed set on which the loss is recorded
  std::uint64_t evaluation_seed = 1;
  bool keep_parameters = true;  ///< at every record, for what is measured along the training
};

/// Inputs s_1 .. s_T and targets s_2 .. s_{T+1} of a set of sequences.
[[nodiscard]] StackBatch batch_of(const SequenceSet& sequences);
/// Weights ~ N(0, deviation^2), keyed by the seed; lambda = 1, and gamma = sigmoid(4) where there is forgetting.
[[nodiscard]] Eigen::VectorXd initial_parameters(const StackShape& shape, double deviation, std::uint64_t seed);

/// Gradient of the next-state loss on a batch of fresh sequences. Observables: loss (mean over t of half the squared
/// error on the fixed evaluation set), and parameters where they are to be kept.
class StackTraining final : public DescentSystem {
 public:
  StackTraining(const SequenceProblem& problem, const StackShape& shape, const TrainingOptions& options,
                std::uint64_t seed, int threads, bool keep_parameters);

  [[nodiscard]] Eigen::VectorXd initial() const override;
  void declare(Trajectory& trajectory) const override;
  void observe(const Eigen::VectorXd& parameters, Trajectory& trajectory) const override;
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& parameters) const override;
  void gradient(std::uint64_t step, const Eigen::VectorXd& parameters, Eigen::VectorXd& gradient) const override;

 private:
  [[nodiscard]] StackBatch draw(std::uint64_t step) const;

  SequenceProblem problem_;
  TrainingOptions options_;
  std::uint64_t seed_;
  bool keep_parameters_;
  std::unique_ptr<Stack> stack_;
  mutable ThreadTeam team_;
  StackBatch evaluation_;
};

/// 0, record_every, ..., steps.
[[nodiscard]] std::vector<double> recorded_steps(const TrainingOptions& options);

}  // namespace iclflow
