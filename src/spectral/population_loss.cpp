#include "iclflow/spectral/population_loss.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "iclflow/spectral/finite_dimension.hpp"
#include "iclflow/spectral/large_context.hpp"

namespace iclflow {

void PopulationLoss::hessian(const Eigen::VectorXd& state, Eigen::MatrixXd& matrix) const {
  matrix.resize(state.size(), state.size());
  Eigen::VectorXd direction = Eigen::VectorXd::Zero(state.size());
  Eigen::VectorXd column;
  for (Eigen::Index j = 0; j < state.size(); ++j) {
    direction(j) = 1.0;
    hessian_vector(state, direction, column);
    matrix.col(j) = column;
    direction(j) = 0.0;
  }
}

double PopulationLoss::margin(const Eigen::VectorXd& /*state*/) const {
  return std::numeric_limits<double>::infinity();
}

std::string PopulationLoss::beyond(const Eigen::VectorXd& /*state*/) const { return {}; }

std::optional<double> PopulationLoss::standard_error(const Eigen::VectorXd& /*state*/) const { return std::nullopt; }

const std::vector<std::string_view>& closed_form_closures() {
  static const std::vector<std::string_view> names{"large-context", "finite-dimension"};
  return names;
}

std::unique_ptr<PopulationLoss> make_population_loss(std::string_view closure, const Problem& problem,
                                                     const Coordinates& coordinates) {
  if (closure == "large-context") return std::make_unique<LargeContext>(problem, coordinates);
  if (closure == "finite-dimension") return std::make_unique<FiniteDimension>(problem, coordinates);
  throw std::invalid_argument(fmt::format("closure \"{}\" has no closed form: \"{}\" is allowed", closure,
                                          fmt::join(closed_form_closures(), "\", \"")));
}

}  // namespace iclflow
