#pragma once

#include <memory>

#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// The system "regression": multi-task in-context linear regression; reduced flow and full simulation.
[[nodiscard]] std::unique_ptr<System> make_regression();

}  // namespace iclflow
