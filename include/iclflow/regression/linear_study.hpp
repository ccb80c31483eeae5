#pragma once

#include <memory>

#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// Regression with attention = "linear": the classical reductions (merged, split) against full-parameter training.
/// Throws InputError.
[[nodiscard]] std::unique_ptr<Study> make_linear_study(const Section& root);

}  // namespace iclflow
