#pragma once

#include <vector>

#include "iclflow/integrate/control.hpp"

namespace iclflow {

/// Step numbers nearest to the sample times. Throws std::invalid_argument when two times fall on one step.
[[nodiscard]] std::vector<std::uint64_t> sample_steps(const std::vector<double>& times, double learning_rate);

/// Stochastic gradient descent, step k at time k * learning_rate, sampled at the steps nearest to `times`
/// (recorded times are the steps' own). Events are interpolated linearly between steps for mu and omega and between
/// samples for the loss. A non-finite weight ends with Status::failed.
[[nodiscard]] Outcome descend(const DescentSystem& system, double learning_rate, const std::vector<double>& times,
                              const std::vector<Event>& events = {}, const Control& control = {});

}  // namespace iclflow
