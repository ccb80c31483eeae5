#include "iclflow/spectral/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlopt.hpp>
#include <stdexcept>

#include "iclflow/random/stream.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

/// The closure in the search variables (m, w, s), flat with s last.
class ScaledLoss {
 public:
  ScaledLoss(const PopulationLoss& loss, Eigen::Index mu_size, Eigen::Index size)
      : loss_(loss), mu_size_(mu_size), state_(size) {}

  [[nodiscard]] Eigen::Index size() const { return state_.size() + 1; }

  const Eigen::VectorXd& state_of(const Eigen::Ref<const Eigen::VectorXd>& variables) {
    // mu = m e^{-s}, omega = w e^s                                          theory: eq:optimum-variables
    const double scale = std::exp(variables(state_.size()));
    state_.head(mu_size_) = variables.head(mu_size_) / scale;
    state_.tail(state_.size() - mu_size_) = variables.segment(mu_size_, state_.size() - mu_size_) * scale;
    return state_;
  }

  double operator()(const Eigen::Ref<const Eigen::VectorXd>& variables, Eigen::Map<Eigen::VectorXd>* slope) {
    const Eigen::VectorXd& state = state_of(variables);
    if (slope != nullptr) {
      loss_.gradient(state, gradient_);
      const double scale = std::exp(variables(state_.size()));
      const Eigen::Index rest = state_.size() - mu_size_;
      slope->head(mu_size_) = gradient_.head(mu_size_) / scale;
      slope->segment(mu_size_, rest) = gradient_.tail(rest) * scale;
      (*slope)(state_.size()) =
          gradient_.tail(rest).dot(state.tail(rest)) - gradient_.head(mu_size_).dot(state.head(mu_size_));
    }
    return loss_.value(state);
  }

 private:
  const PopulationLoss& loss_;
  Eigen::Index mu_size_;
  Eigen::VectorXd state_, gradient_;
};

double objective(unsigned size, const double* variables, double* slope, void* scaled) {
  const auto n = static_cast<Eigen::Index>(size);
  Eigen::Map<Eigen::VectorXd> gradient(slope, slope != nullptr ? n : 0);
  return (*static_cast<ScaledLoss*>(scaled))(Eigen::Map<const Eigen::VectorXd>(variables, n),
                                             slope != nullptr ? &gradient : nullptr);
}

/// A random start whose products mu omega are of order 1 / H, as those of a solution are.
std::vector<double> random_variables(const Problem& problem, const Coordinates& coordinates, std::uint64_t seed,
                                     std::uint32_t start) {
  NormalStream normal({seed, Stream::initial, start, 0});
  const double root = std::sqrt(static_cast<double>(problem.dimension()));
  std::vector<double> variables;
  for (int k = 0; k < problem.heads * problem.tasks(); ++k) variables.push_back(root * normal() / problem.heads);
  for (int k = 0; k < problem.heads * coordinates.size(); ++k) variables.push_back(normal() / root);
  variables.push_back(0.0);
  return variables;
}

nlopt::opt search(ScaledLoss& scaled, double smallest_scale) {
  nlopt::opt search(nlopt::LD_LBFGS, static_cast<unsigned>(scaled.size()));
  search.set_min_objective(objective, &scaled);
  search.set_ftol_rel(1e-14);
  search.set_xtol_rel(1e-12);
  search.set_maxeval(20000);
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> bound(static_cast<std::size_t>(scaled.size()), -infinity);
  bound.back() = std::log(smallest_scale);
  search.set_lower_bounds(bound);
  std::fill(bound.begin(), bound.end(), infinity);
  bound.back() = 0.0;
  search.set_upper_bounds(bound);
  return search;
}

}  // namespace

Optimum find_optimum(const PopulationLoss& loss, const Problem& problem, const Coordinates& coordinates,
                     const OptimumOptions& options) {
  if (options.starts < 1) throw std::invalid_argument("an optimum needs at least one start");
  const Eigen::Index mu_size = static_cast<Eigen::Index>(problem.heads) * problem.tasks();
  const Eigen::Index size = mu_size + static_cast<Eigen::Index>(problem.heads) * coordinates.size();
  ScaledLoss scaled(loss, mu_size, size);
  Optimum best;
  best.loss = std::numeric_limits<double>::infinity();
  for (int k = 0; k < options.starts; ++k) {
    std::vector<double> variables = random_variables(problem, coordinates, options.seed, static_cast<std::uint32_t>(k));
    double value = std::numeric_limits<double>::infinity();
    nlopt::opt one = search(scaled, options.smallest_scale);
    try {
      one.optimize(variables, value);
    } catch (const nlopt::roundoff_limited&) {  // as far as rounding lets it go
    } catch (const std::runtime_error&) {       // no descent from here: this start has found nothing
      continue;
    }
    const Eigen::VectorXd& state = scaled.state_of(Eigen::Map<Eigen::VectorXd>(variables.data(), size + 1));
    value = loss.value(state);
    if (!std::isfinite(value)) continue;
    best.minima.push_back(value);
    if (value >= best.loss) continue;
    best.loss = value;
    best.state = SpectralState::from_flat(state, problem.heads, problem.tasks(), coordinates.size());
  }
  if (best.minima.empty()) throw std::domain_error("no start of the search for the optimum ended at a finite loss");
  std::sort(best.minima.begin(), best.minima.end());
  best.coefficient = loss_coefficient(problem, best.loss);
  return best;
}

}  // namespace iclflow
