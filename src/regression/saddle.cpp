#include "iclflow/regression/saddle.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/analysis/eigenvalues.hpp"
#include "iclflow/reduction/embedding.hpp"

namespace iclflow {

namespace {

/// Names the output-value entry that a direction in weight space moves most.
UnstableMode describe(const WeightLayout& layout, const Rotations& basis, double growth_rate,
                      const Eigen::VectorXd& direction) {
  UnstableMode mode;
  mode.growth_rate = growth_rate;
  for (int h = 0; h < layout.heads; ++h) {
    const HeadView<const double> moved = head(layout, direction, h);
    const Matrix output = basis.psi.transpose() * moved.o;
    const Matrix value = moved.v.rightCols(layout.tasks) * basis.psi;
    for (int i = 0; i < layout.tasks; ++i) {
      const double power = output.row(i).squaredNorm() + value.col(i).squaredNorm();
      if (power <= mode.share) continue;
      mode.head = h;
      mode.task = i;
      mode.share = power;
      mode.antisymmetry = -2.0 * output.row(i).dot(value.col(i)) / power;
    }
  }
  mode.share /= direction.squaredNorm();
  return mode;
}

}  // namespace

std::vector<UnstableMode> unstable_modes(const Problem& problem, const InitialState& at, const SaddleOptions& options,
                                         ThreadTeam& team) {
  const WeightLayout layout = WeightLayout::of(problem);
  const Rotations basis = rotations(problem);
  const Eigen::VectorXd weights = embed(problem, basis, at);
  SymmetrisedGradient gradient(problem, layout, basis, options.seed, static_cast<std::size_t>(options.contexts), team);
  // Central differences: truncation ~ step^2, rounding ~ 1e-15 / step, both about 1e-10 of the gradient's scale.
  const double step = 1e-5 * std::max(1.0, weights.lpNorm<Eigen::Infinity>());
  Eigen::VectorXd behind;
  const auto apply = [&](const Eigen::VectorXd& direction, Eigen::VectorXd& image) {
    // d theta/dt = -grad ell, linearised: -Hess                            theory: eq:saddle-linearised
    const double scale = step / direction.norm();
    gradient(weights - scale * direction, behind);
    gradient(weights + scale * direction, image);
    image = (behind - image) / (2.0 * scale);
  };
  const Eigenpairs found = largest_eigenvalues(weights.size(), apply, options.modes, 1e-8);
  std::vector<UnstableMode> modes;
  for (Eigen::Index k = 0; k < found.values.size(); ++k) {
    modes.push_back(describe(layout, basis, found.values(k), found.vectors.col(k)));
  }
  return modes;
}

std::vector<PredictedGrowth> predicted_growth(const PopulationLoss& loss, const Problem& problem,
                                              const Coordinates& coordinates, const SpectralState& state,
                                              double unused) {
  Eigen::VectorXd slope;
  loss.gradient(state.flat(), slope);
  const auto gradient = SpectralState::from_flat(slope, problem.heads, problem.tasks(), coordinates.size());
  const double largest = state.mu.cwiseAbs().maxCoeff();
  std::vector<PredictedGrowth> entries;
  for (int h = 0; h < problem.heads; ++h) {
    const auto served = (state.mu.row(h).array().abs() >= unused * largest).count();
    for (int i = 0; i < problem.tasks(); ++i) {
      if (std::abs(state.mu(h, i)) >= unused * largest) continue;
      // growth rate of O row i = -V column i of head h: g = d ell/d mu_hi  theory: eq:saddle-growth
      entries.push_back({h, i, gradient.mu(h, i), problem.embedding() - static_cast<int>(served)});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const PredictedGrowth& a, const PredictedGrowth& b) { return a.growth_rate > b.growth_rate; });
  return entries;
}

}  // namespace iclflow
