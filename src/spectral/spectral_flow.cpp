#include "iclflow/spectral/spectral_flow.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <limits>
#include <span>

#include "correlation_kernels.hpp"
#include "iclflow/problem/quantity.hpp"
#include "iclflow/spectral/mobility.hpp"

namespace iclflow {

namespace {

Coordinates choose_coordinates(const Problem& problem, const InitialState& start, bool full) {
  // Without products (merged) an imbalance means nothing and cannot break a block.
  const bool split = problem.parametrisation == Parametrisation::split;
  const bool blocks =
      constant_on_blocks(problem, start.omega) && (!split || constant_on_blocks(problem, start.imbalance_omega));
  return blocks && !full ? Coordinates::blocks(problem) : Coordinates::full(problem);
}

/// First column of every block, or all columns.
Matrix on_coordinates(const Problem& problem, const Coordinates& coordinates, const Matrix& omega) {
  if (coordinates.size() == problem.dimension()) return omega;
  Matrix first(omega.rows(), coordinates.size());
  for (int i = 0; i < problem.tasks(); ++i) first.col(i) = omega.col(problem.block_begin(i));
  return first;
}

Mobility choose_mobility(const Problem& problem, const Eigen::VectorXd& products, const Eigen::VectorXd& imbalance) {
  if (problem.parametrisation == Parametrisation::merged) return Mobility::merged(products.size());
  Eigen::VectorXd factor = Eigen::VectorXd::Constant(products.size(), problem.score_factor());
  factor.head(problem.heads * problem.tasks()).setOnes();
  return Mobility::split(products, imbalance, factor);
}

}  // namespace

struct SpectralFlow::Parts {
  Problem problem;
  Coordinates coordinates;
  std::unique_ptr<PopulationLoss> loss;
  Eigen::VectorXd start;  ///< flat (mu, omega)
  Mobility mobility;
  Eigen::VectorXd speed;  ///< kappa / w, w = 1 for mu

  Parts(const Problem& p, const InitialState& initial, const LossFactory& make_loss, bool full)
      : problem(p),
        coordinates(choose_coordinates(p, initial, full)),
        loss(make_loss(p, coordinates)),
        start(SpectralState{initial.mu, on_coordinates(p, coordinates, initial.omega)}.flat()),
        mobility(choose_mobility(
            p, start,
            SpectralState{initial.imbalance_mu, on_coordinates(p, coordinates, initial.imbalance_omega)}.flat())),
        speed(mobility.kappa()) {
    SpectralView<double> view(speed.data(), p.heads, p.tasks(), coordinates.size());
    for (int k = 0; k < coordinates.size(); ++k) {
      view.omega.col(k) /= coordinates.multiplicity[static_cast<std::size_t>(k)];
    }
  }

  /// H x d_x and H x I forms of the omega part of flat (mu, omega).
  [[nodiscard]] Matrix full_omega(const Matrix& omega) const {
    return coordinates.size() == problem.dimension() ? omega : expand_blocks(problem, omega);
  }
  [[nodiscard]] Matrix block_omega(const Matrix& omega) const {
    return coordinates.size() == problem.tasks() ? omega : block_means(problem, omega);
  }
};

SpectralFlow::SpectralFlow(const Problem& problem, const InitialState& start, const LossFactory& loss,
                           bool full_coordinates)
    : parts_(std::make_unique<const Parts>(problem, start, loss, full_coordinates)) {}

SpectralFlow::SpectralFlow(const Problem& problem, const InitialState& start, std::string_view closure,
                           bool full_coordinates)
    : SpectralFlow(
          problem, start,
          [closure](const Problem& p, const Coordinates& coordinates) {
            return make_population_loss(closure, p, coordinates);
          },
          full_coordinates) {}

SpectralFlow::~SpectralFlow() = default;

const Coordinates& SpectralFlow::coordinates() const { return parts_->coordinates; }

bool SpectralFlow::bounded() const {
  return parts_->loss->margin(parts_->start) != std::numeric_limits<double>::infinity();
}

std::string SpectralFlow::beyond(const Eigen::VectorXd& y) const { return parts_->loss->beyond(products(y)); }

Eigen::VectorXd SpectralFlow::initial() const {
  Eigen::VectorXd y;
  parts_->mobility.to_chart(parts_->start, y);
  return y;
}

Eigen::VectorXd SpectralFlow::products(const Eigen::VectorXd& y) const {
  Eigen::VectorXd x;
  parts_->mobility.from_chart(y, x);
  return x;
}

void SpectralFlow::velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const {
  // y' = -(kappa / w) d ell/d x                                           theory: eq:chart-flow
  if (parts_->mobility.trivial()) {
    parts_->loss->gradient(y, rate);
  } else {
    static thread_local Eigen::VectorXd x;
    parts_->mobility.from_chart(y, x);
    parts_->loss->gradient(x, rate);
  }
  multiply_by_minus(parts_->speed.data(), static_cast<std::size_t>(y.size()), rate.data());
}

void SpectralFlow::jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const {
  // d y'/d y = -diag(kappa / w) Hess diag(dx/dy)                          theory: eq:chart-jacobian
  const Eigen::VectorXd x = products(y);
  Eigen::VectorXd slope;
  parts_->mobility.slope(x, slope);
  parts_->loss->hessian(x, derivative);
  derivative = -(parts_->speed.asDiagonal() * derivative * slope.asDiagonal());
}

void SpectralFlow::jacobian_product(const Eigen::VectorXd& y, const Eigen::VectorXd& direction,
                                    Eigen::VectorXd& product) const {
  // the same times a direction: one product with the Hessian              theory: eq:chart-jacobian
  const Eigen::VectorXd x = products(y);
  Eigen::VectorXd along;
  parts_->mobility.slope(x, along);
  along.array() *= direction.array();
  parts_->loss->hessian_vector(x, along, product);
  product.array() *= -parts_->speed.array();
}

bool SpectralFlow::symmetrised_jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& matrix,
                                        Eigen::VectorXd& scale) const {
  const Eigen::VectorXd x = products(y);
  Eigen::VectorXd slope;
  parts_->mobility.slope(x, slope);
  // m = kappa / w dx/dy >= 0: sqrt(m) Hess sqrt(m), scale sqrt(kappa / w / (dx/dy))
  //                                                                       theory: eq:symmetrised-jacobian
  Eigen::VectorXd root = parts_->speed.cwiseProduct(slope).cwiseSqrt();
  scale.setOnes(y.size());
  for (Eigen::Index j = 0; j < y.size(); ++j) {
    if (parts_->speed(j) == 0.0) continue;
    if (!(root(j) > 0.0)) return false;  // a product that underflowed
    scale(j) = parts_->speed(j) / root(j);
  }
  parts_->loss->hessian(x, matrix);
  matrix = root.asDiagonal() * matrix * root.asDiagonal();
  return true;
}

void SpectralFlow::error_scale(const Eigen::VectorXd& y, double absolute, double relative,
                               Eigen::VectorXd& scale) const {
  if (parts_->mobility.trivial()) {
    parts_->mobility.error_scale(y, absolute, relative, scale);
    return;
  }
  static thread_local Eigen::VectorXd x;
  parts_->mobility.from_chart(y, x);
  parts_->mobility.error_scale(x, absolute, relative, scale);
}

void SpectralFlow::declare(Trajectory& trajectory) const {
  const auto heads = static_cast<std::size_t>(parts_->problem.heads);
  const auto tasks = static_cast<std::size_t>(parts_->problem.tasks());
  const auto dimension = static_cast<std::size_t>(parts_->problem.dimension());
  trajectory.declare("loss", "population loss (1/2) E |yhat - y_q|^2, noise-free target, summed over tasks");
  trajectory.declare("loss_by_task", "population loss of each task", {"task"}, {tasks});
  trajectory.declare("mu", "semi-singular values of the output-value circuits", {"head", "task"}, {heads, tasks});
  trajectory.declare("omega_block", "mean over each task's block of the semi-singular values of the key-query circuits",
                     {"head", "task"}, {heads, tasks});
  trajectory.declare("omega", "semi-singular values of the key-query circuits, score factor included",
                     {"head", "coordinate"}, {heads, dimension});
  if (parts_->loss->standard_error(parts_->start)) {
    trajectory.declare("loss_standard_error", "standard error of the loss over the closure's contexts");
  }
}

void SpectralFlow::observe(const Eigen::VectorXd& y, Trajectory& trajectory) const {
  const Problem& problem = parts_->problem;
  const Eigen::VectorXd x = products(y);
  const auto state = SpectralState::from_flat(x, problem.heads, problem.tasks(), parts_->coordinates.size());
  const Eigen::VectorXd by_task = parts_->loss->by_task(x);
  const Matrix block = parts_->block_omega(state.omega);
  const Matrix full = parts_->full_omega(state.omega);
  const auto row = [](const auto& dense) {
    return std::span<const double>(dense.data(), static_cast<std::size_t>(dense.size()));
  };
  trajectory.append(0, by_task.sum());
  trajectory.append(1, row(by_task));
  trajectory.append(2, row(state.mu));
  trajectory.append(3, row(block));
  trajectory.append(4, row(full));
  if (const auto error = parts_->loss->standard_error(x)) trajectory.append(5, std::span<const double>(&*error, 1));
}

double SpectralFlow::quantity(const std::string& name, const Eigen::VectorXd& y) const {
  const Problem& problem = parts_->problem;
  if (name == closure_margin) return parts_->loss->margin(products(y));
  const Quantity wanted = parse_quantity(name, problem.heads, problem.tasks());
  const Eigen::VectorXd x = products(y);
  if (wanted.kind == Quantity::Kind::loss) return parts_->loss->value(x);
  const auto state = SpectralState::from_flat(x, problem.heads, problem.tasks(), parts_->coordinates.size());
  if (wanted.kind == Quantity::Kind::mu) return state.mu(wanted.head, wanted.task);
  return parts_->block_omega(state.omega)(wanted.head, wanted.task);
}

std::string SpectralFlow::component(Eigen::Index i) const {
  const Eigen::Index mus = static_cast<Eigen::Index>(parts_->problem.heads) * parts_->problem.tasks();
  const bool is_mu = i < mus;
  const Eigen::Index columns = is_mu ? parts_->problem.tasks() : parts_->coordinates.size();
  const Eigen::Index entry = is_mu ? i : i - mus;
  return fmt::format("{}[{}][{}]", is_mu ? "mu" : "omega", entry / columns, entry % columns);
}

}  // namespace iclflow
