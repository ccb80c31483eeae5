#pragma once

#include <string>
#include <string_view>

#include "iclflow/experiment/document.hpp"

namespace iclflow {

/// Sets the value at a path: "problem.noise_variance", "dynamics.NAME.batch" (a [[dynamics]] by its name),
/// "initial.mu[0][1]", "event[0].level". A key (or its table) that is not there yet is made; whether it may be is for
/// the reader of the document to say. The value counts as standing on `line`.
/// Throws InputError when the path leads nowhere.
void assign(Document& document, const std::string& path, const Value& value, int line);

/// Removes a key of the root table if it is there.
void remove(Document& document, std::string_view key);

/// Leaves every [[dynamics]] of kind "attention" out, and with them [expect] and [report], which may speak of them.
void leave_simulations_out(Document& document);

/// The value as TOML on one line; texts in quotes.
[[nodiscard]] std::string toml(const Value& value);

}  // namespace iclflow
