#pragma once

#include <optional>
#include <vector>

#include "iclflow/problem/initial.hpp"

namespace iclflow {

/// Closed forms under the large-context closure; losses are ell (half, noise-free target, summed over tasks).
/// With x_i = kappa phi_i d_i / L a task's loss is (P_i / 2) x_i / (1 + x_i); kappa is the coefficient.
/// Source: theory/05-closed-forms.md.

/// All tasks have one dimension and one signal variance.
[[nodiscard]] bool equal_tasks(const Problem& problem);

/// x = ell / (sum_i P_i / 2 - ell) of a total loss; empty unless the loss is in (0, sum P_i / 2).
[[nodiscard]] std::optional<double> loss_ratio(const Problem& problem, double loss);
/// kappa = x L / (phi d_i) of a total loss; empty for unequal tasks and where x is.
[[nodiscard]] std::optional<double> loss_coefficient(const Problem& problem, double loss);

struct DedicatedLimit {
  double loss;
  std::vector<double> mu;     ///< sqrt(d_i) / (1 + x_i), x_i = e phi_i d_i / L
  std::vector<double> omega;  ///< d_i^{-1/2}
};
/// One head per task: the limit of the balanced split flow from an aligned start. Empty when H < I.
[[nodiscard]] std::optional<DedicatedLimit> dedicated_limit(const Problem& problem);

/// The dedicated limit as a start: head i on task i, every other entry exactly zero (split: both of its factors), so
/// that only noise moves it. Throws std::invalid_argument when H < I.
[[nodiscard]] InitialState dedicated_start(const Problem& problem);

struct SingleHead {
  double loss;
  double coefficient;         ///< kappa: e I for equal tasks; else the kappa whose summed task losses equal `loss`
  std::vector<double> mu;     ///< best value per task
  std::vector<double> omega;  ///< best value per block
};
/// The best a single head can do on all tasks; exact (a convex problem solved by its water level). A task too weak to
/// be worth serving has mu = omega = 0.
[[nodiscard]] SingleHead best_single_head(const Problem& problem);

/// kappa of the best H heads: e I, I/(H-1), or 1. Empty for unequal tasks.
[[nodiscard]] std::optional<double> best_coefficient(const Problem& problem);

struct HeadPair {
  double loss;         ///< infimum, reached as omega -> 0 with 2 mu omega = 1/(1 + phi d / L)
  double coefficient;  ///< 1
};
/// Opposite heads on one task: de-biased gradient descent. Empty unless I = 1 and H >= 2.
[[nodiscard]] std::optional<HeadPair> opposite_pair(const Problem& problem);
/// ell of a +/- omega pair at the best mu. Throws std::invalid_argument unless I = 1.
[[nodiscard]] double opposite_pair_loss(const Problem& problem, double omega);

/// Blockwise Bayes-optimal ridge regression, asymptotic in d; ell.
[[nodiscard]] double ridge_loss(const Problem& problem);
/// Blockwise one gradient step at its best rate, exact at every d and L; ell.
[[nodiscard]] double gradient_step_loss(const Problem& problem);

struct WarmUp {
  int head;  ///< that wins the task: the largest initial mu
  double warm_up_end;
  double emergence_time;
  std::optional<double> emergence_end;  ///< empty where damping ends the emergence before 95 % of the loss is gone
};
/// When 5, 50 and 95 % of each task's loss above its dedicated limit are gone, by quadrature along the leading-order
/// curve of all heads on that task. Empty where the formulas do not apply: winning mu or omega not positive,
/// unbalanced split start, omega not constant on the block, or a rival that overtakes the winner.
/// Accuracy and domain: theory/06-phases-allocation.md.
[[nodiscard]] std::vector<std::optional<WarmUp>> warm_up_times(const Problem& problem, const InitialState& start);

/// Where a fraction of the loss is gone on the universal emergence profile of small balanced split starts: time after
/// the pole t* in units of sqrt(d_i / s_w) / P_i; -3.06, -0.62, +0.12 at 5, 50, 95 %.
[[nodiscard]] double emergence_offset(double fraction);

}  // namespace iclflow
