#pragma once

#include <memory>

#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// An experiment that trains a stack on sequences: [sequence], [model], [training], and what is measured of the trained
/// weights. Throws InputError.
[[nodiscard]] std::unique_ptr<Study> make_training_study(const Section& root);

}  // namespace iclflow
