#pragma once

namespace iclflow::cli {

/// From now on the first SIGINT or SIGTERM is remembered instead of ending the program; a second one ends it.
void catch_interruptions();
[[nodiscard]] bool was_interrupted();

}  // namespace iclflow::cli
