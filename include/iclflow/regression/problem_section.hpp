#pragma once

#include <nlohmann/json.hpp>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/problem/problem.hpp"

namespace iclflow {

/// Reads [problem]. Throws InputError; the result passed validate().
[[nodiscard]] Problem read_problem(const Section& section);
void resolve_problem(const Problem& problem, TomlText& text);
/// `problem` of summary.json: the keys of [problem] and what follows from them (dimension, score_factor, signal_power,
/// ..).
[[nodiscard]] nlohmann::ordered_json problem_json(const Problem& problem);

}  // namespace iclflow
