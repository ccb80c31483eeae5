#pragma once

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/mesa/training.hpp"

namespace iclflow {

/// [sequence], [model] and [training] of an autoregressive experiment. All throw InputError.
struct AutoregressiveProblem {
  SequenceProblem sequence;
  StackShape shape;
};
[[nodiscard]] AutoregressiveProblem read_autoregressive_problem(const Section& root);
void resolve(const AutoregressiveProblem& problem, TomlText& text);

[[nodiscard]] TrainingOptions read_training(const Section& section, const StackShape& shape);
void resolve(const TrainingOptions& options, TomlText& text);

[[nodiscard]] std::string_view sequence_kind_name(SequenceKind kind);
[[nodiscard]] std::string_view layer_kind_name(LayerKind kind);

}  // namespace iclflow
