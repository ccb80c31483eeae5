#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

/// [probes]: what can be read linearly from the residual stream (theory/15-probes-and-prompts.md).
struct ProbePlan {
  std::size_t sequences = 4000;            ///< that a decoder is fitted on; as many others score it
  std::vector<int> positions{};            ///< context lengths t = 1 .. length
  double ridge = 1e-8;                     ///< of the decoder, relative to the mean square of its inputs
  double lambda = 1.0;                     ///< of the target (M_t + I / lambda)^-1 s_t
  int past = 8;                            ///< tokens decoded from the first layer's output at the last position
  std::size_t sensitivity_sequences = 32;  ///< over which |d f^(1)_T / d s_t'| is averaged; 0: not computed
  std::uint64_t seed = 1;
};

/// Empty without the table. length: of the sequences; positions are by default those of 2, 5, 10, 20, 50, 100, ...
/// below it, and it. Throws InputError.
[[nodiscard]] std::optional<ProbePlan> read_probes(const Section& root, int length);
void resolve(const ProbePlan& plan, TomlText& text);

}  // namespace iclflow
