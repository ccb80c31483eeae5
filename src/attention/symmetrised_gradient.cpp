#include "iclflow/attention/symmetrised_gradient.hpp"

#include <bit>

namespace iclflow {

namespace {

/// +1 or -1: entry (row, column) of Sylvester's Hadamard matrix.
double hadamard(std::size_t row, std::size_t column) { return std::popcount(row & column) % 2 == 0 ? 1.0 : -1.0; }

/// basis diag(signs) basis^T, signs from column `flip` of the Hadamard matrix starting at row `first`.
Matrix reflection(const Matrix& basis, std::size_t first, std::size_t flip) {
  Eigen::VectorXd signs(basis.cols());
  for (Eigen::Index j = 0; j < signs.size(); ++j) signs(j) = hadamard(first + static_cast<std::size_t>(j), flip);
  return basis * signs.asDiagonal() * basis.transpose();
}

}  // namespace

SymmetrisedGradient::SymmetrisedGradient(const Problem& problem, const WeightLayout& layout, const Rotations& basis,
                                         std::uint64_t seed, std::size_t contexts, ThreadTeam& team)
    : layout_(layout),
      basis_(basis),
      seed_(seed),
      contexts_(contexts),
      flips_(std::bit_ceil(static_cast<std::size_t>(layout.tokens()))),
      estimator_(problem, layout, team) {}

ActingWeights SymmetrisedGradient::flipped(const ActingWeights& weights, std::size_t flip) const {
  // M -> D_z M D_x,  A -> D_y A D_z,  D_z = diag(D_x, D_y)                  theory: eq:sign-flips
  const Matrix x = reflection(basis_.phi, 0, flip);
  const Matrix y = reflection(basis_.psi, static_cast<std::size_t>(layout_.dimension), flip);
  const Eigen::Index d = layout_.dimension;
  const Eigen::Index tasks = layout_.tasks;
  ActingWeights image = weights;
  for (Matrix& m : image.key_query) {
    m.topRows(d) = x * m.topRows(d) * x;
    m.bottomRows(tasks) = y * m.bottomRows(tasks) * x;
  }
  for (Matrix& a : image.output_value) {
    a.leftCols(d) = y * a.leftCols(d) * x;
    a.rightCols(tasks) = y * a.rightCols(tasks) * y;
  }
  return image;
}

TokenEstimator<double>::Result SymmetrisedGradient::operator()(const ActingWeights& weights) {
  TokenEstimator<double>::Result mean{0.0, ActingWeights::zero(layout_)};
  for (std::size_t flip = 0; flip < flips_; ++flip) {
    const auto one = estimator_(flipped(weights, flip), {seed_, Stream::training, 0, 0}, contexts_);
    const ActingWeights back = flipped(one.gradient, flip);
    mean.loss += one.loss;
    for (std::size_t h = 0; h < back.key_query.size(); ++h) {
      mean.gradient.key_query[h] += back.key_query[h];
      mean.gradient.output_value[h] += back.output_value[h];
    }
  }
  const double count = static_cast<double>(flips_);
  mean.loss /= count;
  mean.gradient *= 1.0 / count;
  return mean;
}

void SymmetrisedGradient::operator()(const Eigen::VectorXd& weights, Eigen::VectorXd& gradient) {
  pull_back(layout_, weights, (*this)(acting(layout_, weights)).gradient, gradient);
}

}  // namespace iclflow
