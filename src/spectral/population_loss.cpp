#include "iclflow/spectral/population_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "iclflow/spectral/large_context.hpp"

namespace iclflow {

const std::vector<std::string_view>& closures() {
  static const std::vector<std::string_view> names{"large-context"};
  return names;
}

const std::vector<std::string_view>& planned_closures() {
  static const std::vector<std::string_view> names{"finite-dimension", "sampled"};
  return names;
}

std::unique_ptr<PopulationLoss> make_population_loss(std::string_view closure, const Problem& problem,
                                                     const Coordinates& coordinates) {
  if (closure == "large-context") return std::make_unique<LargeContext>(problem, coordinates);
  const auto& planned = planned_closures();
  const bool is_planned = std::find(planned.begin(), planned.end(), closure) != planned.end();
  throw std::invalid_argument(fmt::format("closure \"{}\" is {}: \"{}\" is allowed", closure,
                                          is_planned ? "planned but not there yet" : "unknown",
                                          fmt::join(closures(), "\", \"")));
}

}  // namespace iclflow
