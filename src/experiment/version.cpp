#include "iclflow/experiment/experiment.hpp"

namespace iclflow {

std::string_view version() { return ICLFLOW_VERSION; }

}  // namespace iclflow
