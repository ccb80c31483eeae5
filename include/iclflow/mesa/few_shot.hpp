#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "iclflow/mesa/few_shot_section.hpp"
#include "iclflow/mesa/stack.hpp"
#include "iclflow/plots/sequence_figures.hpp"

namespace iclflow {

/// Regression problems side by side: y = W* x with Haar-random orthogonal W*, a new one for every task.
struct PairSet {
  std::size_t count = 0;
  int pairs = 0;          ///< of one task
  int tasks = 1;          ///< one after the other in each sequence
  int dimension = 0;      ///< n
  std::vector<double> x;  ///< count x (tasks * pairs) x n
  std::vector<double> y;
};
/// Problems 0 .. count - 1 of (seed, step); each keyed by its own number.
[[nodiscard]] PairSet draw_pairs(const FewShotPlan& plan, int dimension, int tasks, std::uint32_t step,
                                 std::size_t count);

/// Learned tokens in the space of the states, n x tokens.
struct Prompt {
  Eigen::MatrixXd prefix;  ///< before the first pair; no columns: none
  Eigen::MatrixXd eos;     ///< one column after every pair, or none
};
/// What the model sees, [prefix, x_1, y_1, (eos), x_2, ...]; targets y_i at x_i, all with the same weight, nothing
/// elsewhere.
[[nodiscard]] StackBatch prompted(const PairSet& pairs, const Prompt& prompt);

/// Loss and its derivative by the prompt's tokens, for frozen parameters.
double prompt_gradient(Stack& model, const Eigen::VectorXd& parameters, const PairSet& pairs, const Prompt& prompt,
                       Prompt& gradient);

/// Half the squared error of W^ x_i, W^ from least squares (lambda) on the pairs seen before it, or on these and the
/// spurious pairs (y_j, x_{j+1}), the last of them (y_{i-1}, x_i): mean over sequences, for i = 1 .. tasks * pairs.
[[nodiscard]] std::vector<double> least_squares_losses(const PairSet& pairs, double lambda, bool spurious);

/// `pairs`, `one_task` and `two_tasks`: each `models` (`TF`, `TF+EOS`, `TF+EOS+P`) with `loss` and `standard_error` by
/// the number of pairs seen, from 0, and `mean_loss`, and `controls` (`least_squares`, `spurious`); `training` of the
/// prompts: `TF+EOS` and `TF+EOS+P` as lists of {step, loss}; and `prompts`, the learned tokens. A loss is half the
/// squared error of the answer, summed over coordinates. Prompts are learned on one task. The result does not depend on
/// the model's threads. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json few_shot(Stack& model, const Eigen::VectorXd& parameters, const FewShotPlan& plan,
                                              const std::function<bool()>& interrupted = {});
/// The result of `few_shot` as it is drawn.
[[nodiscard]] FewShotFigure few_shot_figure(const nlohmann::ordered_json& few_shot, const std::string& title);

}  // namespace iclflow
