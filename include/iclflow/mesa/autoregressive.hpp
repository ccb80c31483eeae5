#pragma once

#include <memory>

#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// The system "autoregressive".
[[nodiscard]] std::unique_ptr<System> make_autoregressive();

}  // namespace iclflow
