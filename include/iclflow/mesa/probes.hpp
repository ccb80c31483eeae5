#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "iclflow/mesa/probes_section.hpp"
#include "iclflow/mesa/sequences.hpp"
#include "iclflow/mesa/stack.hpp"
#include "iclflow/plots/sequence_figures.hpp"

namespace iclflow {

/// `lambda`, `positions`, `next_state` and `preconditioned_input`: each `loss`, `standard_error` and `median`
/// [layer][position] (layer 0: the tokens), and `constant_loss` and `constant_median` [position], of the best constant;
/// `past_tokens`: `positions` t' and the same by t'; `sensitivity`: `positions` t', `norm`. A loss is the mean over
/// sequences that the decoder has not seen of half the squared error, summed over the coordinates; the median tells a
/// few sequences on which the model diverges from all others. Double precision whatever the model was trained in:
/// finite differences. The result does not depend on the threads. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json probes(const SequenceProblem& problem, const StackShape& shape,
                                            const Eigen::VectorXd& parameters, const ProbePlan& plan, int threads = 1,
                                            const std::function<bool()>& interrupted = {});

/// The result of `probes` as it is drawn: medians over those of the best constant.
[[nodiscard]] ProbesFigure probes_figure(const nlohmann::ordered_json& probes, const std::string& title);

}  // namespace iclflow
