#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "iclflow/mesa/baselines_section.hpp"
#include "iclflow/mesa/sequences.hpp"

namespace iclflow {

/// Losses of predictors of s_{t+1} from s_1 .. s_t that learn nothing but the few numbers named, by sampling; mean over
/// t of half the squared error, with standard errors, and `positions`, the loss at every t (theory: 14-gradient-step).
/// On sequences 0, 1, ... of (seed, Stream::evaluation), which a model's evaluation set of the same seed shares.
///
/// stacked: states under each other that all but the last take in place of s_t;
/// zero: {loss, standard_error, positions};
/// gradient_step: {eta, ...}, the best of eta G_t s_t;
/// ridge: [{lambda, ...}];
/// preconditioned: [{steps, lambda, ..., initial, alpha, beta, least_squares, neumann, unnormalised}]: the
/// trained recursion, and as entries of their own the best polynomial of the same degree, Neumann's series, and the
/// best polynomial of M_t itself;
/// kernel_regression: {beta, ...}.
///
/// With a clip every entry holds clipped: {clip, loss, standard_error, positions} besides, and where a rate is
/// searched, the best one under the clip. Numbers are fitted on the sequences they are scored on: at N sequences a bias
/// of the order 1 / N. Same numbers for any count of threads; null when interrupted.
[[nodiscard]] nlohmann::ordered_json sampled_baselines(const BaselinePlan& plan, const SequenceProblem& problem,
                                                       int threads, const std::function<bool()>& interrupted);

/// A table of these for the terminal.
[[nodiscard]] std::string describe_baselines(const nlohmann::ordered_json& baselines);

}  // namespace iclflow
