#pragma once

#include <cstdint>
#include <memory>

#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

enum class Precision { double_precision, single_precision };
/// tokens: exact gradient of the loss of contexts drawn token by token. score_space: unbiased, of smaller variance and
/// far cheaper, not the gradient of any sampled loss (attention/score_space_gradient.hpp).
enum class GradientEstimator { tokens, score_space };

struct SimulationOptions {
  std::uint64_t seed = 1;
  int batch = 1000;                 ///< contexts per step (sgd), or the fixed set (gradient-flow)
  int evaluation_contexts = 20000;  ///< fixed set on which the loss is recorded, the same for every seed
  Precision precision = Precision::double_precision;
  GradientEstimator estimator = GradientEstimator::tokens;  ///< of sgd
  bool symmetrised = false;  ///< gradient-flow: every context with its sign flips, the manifold stays exactly invariant
  int threads = 1;           ///< never changes a bit of the result
};

/// Full-parameter simulation started at `weights` (laid out by `layout`). Same observables for both:
/// loss, loss_standard_error (of the evaluation set), mu (head, task), omega_block (head, task), omega (head,
/// coordinate), leakage_key_query, leakage_cross, leakage_output_value, leakage_value_x.
/// Throws std::invalid_argument where options.estimator is score_space and score_space_obstacle holds something against
/// the weights.
[[nodiscard]] std::unique_ptr<DescentSystem> make_descent(const Problem& problem, const WeightLayout& layout,
                                                          const Eigen::VectorXd& weights,
                                                          const SimulationOptions& options);
/// Gradient flow of the loss over a fixed set of `batch` contexts. Throws std::invalid_argument for the estimator
/// score_space: at fixed contexts that field has no loss, and jumps where directions of heads coincide.
[[nodiscard]] std::unique_ptr<OdeSystem> make_gradient_flow(const Problem& problem, const WeightLayout& layout,
                                                            const Eigen::VectorXd& weights,
                                                            const SimulationOptions& options);

}  // namespace iclflow
