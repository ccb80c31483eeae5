#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/mesa/sequences.hpp"

namespace iclflow {

/// [few_shot]: regression pairs for a model that was trained on sequences, and prompts learned with the model frozen
/// (theory/15-probes-and-prompts.md).
struct FewShotPlan {
  int pairs = 20;                           ///< of a task
  InitialLaw inputs = InitialLaw::uniform;  ///< x_i ~ U(-1, 1) each, or N(0, 1)
  std::size_t sequences = 4000;             ///< on which everything is scored
  int batch = 128;                          ///< fresh sequences for each step of a prompt
  std::uint64_t steps = 2000;               ///< of each prompt; 0: no prompts
  double learning_rate_eos = 1e-3;          ///< Adam, constant
  double learning_rate_prefix = 9e-4;
  int prefix = 20;                 ///< tokens; 0: no prefix
  double initial_deviation = 1.0;  ///< of the learned tokens' first entries
  double lambda = 1000.0;          ///< of the least-squares controls, (X X^T + I / lambda)^-1
  std::uint64_t seed = 1;
};

/// Empty without the table. inputs: those of the sequences' first state by default. Throws InputError.
[[nodiscard]] std::optional<FewShotPlan> read_few_shot(const Section& root, InitialLaw inputs);
void resolve(const FewShotPlan& plan, TomlText& text);

}  // namespace iclflow
