#include "iclflow/reduction/closures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace iclflow {

const std::vector<std::string_view>& closures() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all = closed_form_closures();
    all.emplace_back("sampled");
    return all;
  }();
  return names;
}

std::unique_ptr<PopulationLoss> make_population_loss(const Closure& closure, const Problem& problem,
                                                     const Coordinates& coordinates) {
  if (closure.name == "sampled") return std::make_unique<SampledLoss>(problem, coordinates, closure.sampled);
  if (std::find(closures().begin(), closures().end(), closure.name) == closures().end()) {
    throw std::invalid_argument(
        fmt::format("closure \"{}\" is unknown: \"{}\" is allowed", closure.name, fmt::join(closures(), "\", \"")));
  }
  return make_population_loss(closure.name, problem, coordinates);
}

SpectralFlow make_flow(const Problem& problem, const InitialState& start, const Closure& closure,
                       bool full_coordinates) {
  return SpectralFlow(
      problem, start,
      [&closure](const Problem& p, const Coordinates& coordinates) {
        return make_population_loss(closure, p, coordinates);
      },
      full_coordinates);
}

}  // namespace iclflow
