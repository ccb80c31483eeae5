#pragma once

#include <memory>

#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// Reduction of one layer of autoregressive linear attention: the two-parameter flow against full-parameter training.
/// For root sections with [[dynamics]]. Throws InputError.
[[nodiscard]] std::unique_ptr<Study> make_autoregressive_flow(const Section& root);

}  // namespace iclflow
