#pragma once

#include <optional>

#include "iclflow/problem/problem.hpp"

namespace iclflow {

/// Curvature of the population loss along a response row of K (the YX block) of a balanced head with output-value entry
/// mu on task i and key-query entry omega: s_w mu^2 |omega| P_i^2 (phi_i^2 + 2/d_i), exact as L grows at any d_i.
/// The stiffest direction of the split model when responses are large: it decides which SGD step is stable, though the
/// flow never moves along it. Source: theory/04-flow.md, eq:response-key-curvature.
[[nodiscard]] double response_key_curvature(const Problem& problem, int task, double mu, double omega);

/// 2 / (largest response-key curvature at the dedicated limit): SGD with a larger rate cannot settle there; the
/// overshoot of mu during emergence needs a smaller one still. Empty when merged (no such direction) or H < I.
[[nodiscard]] std::optional<double> largest_learning_rate(const Problem& problem);

/// Time that an output-value entry of imbalance C = o^2 - v^2 (not zero) takes from mu to -level > 0 while its slope
/// d ell / d mu = growth_rate > 0 is constant: when the full dynamics leaves the limit.
/// Source: theory/08-saddle.md.
[[nodiscard]] double escape_time(double growth_rate, double imbalance, double mu, double level);

}  // namespace iclflow
