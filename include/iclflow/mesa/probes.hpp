#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "iclflow/mesa/sequences.hpp"
#include "iclflow/mesa/stack.hpp"

namespace iclflow {

class Section;
class TomlText;

/// [probes]: what can be read linearly from the residual stream (theory: 15-probes-and-prompts.md).
struct ProbePlan {
  std::size_t sequences = 4000;          ///< that a decoder is fitted on; as many others score it
  std::vector<int> positions{};          ///< context lengths t = 1 .. length; empty: 2, 5, 10, 20, 50, ... up to length
  double ridge = 1e-8;                   ///< of the decoder, relative to the mean square of its inputs
  double lambda = 1.0;                   ///< of the target (S S^T + I / lambda)^-1 s_t
  int past = 8;                          ///< tokens decoded from the first layer's output at the last position
  std::size_t sensitivity_sequences = 32;  ///< over which |d f^(1)_T / d s_t'| is averaged; 0: not computed
  std::uint64_t seed = 1;
};

/// Empty without the table. Throws InputError.
[[nodiscard]] std::optional<ProbePlan> read_probes(const Section& root, const SequenceProblem& problem);
void resolve(const ProbePlan& plan, TomlText& text);

/// `lambda`, `positions`, `next_state` and `preconditioned_input`: each `loss` and `standard_error` [layer][position]
/// (layer 0: the tokens) and `constant_loss` [position], of the best constant; `past_tokens` and `sensitivity`: `positions`
/// t', `loss`, `standard_error`, `constant_loss`, and `norm`. A loss is the mean over sequences that the decoder has not seen
/// of half the squared error, summed over the coordinates. Layers are those of `model`, which should be double: finite
/// differences. The result does not depend on the model's threads. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json probes(const SequenceProblem& problem, Stack& model,
                                            const Eigen::VectorXd& parameters, const ProbePlan& plan,
                                            const std::function<bool()>& interrupted = {});

}  // namespace iclflow
