#include "iclflow/attention/estimators.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace iclflow {

namespace {

double dimension(const Problem& problem, int task) { return problem.task_dimensions[static_cast<std::size_t>(task)]; }

bool inverts(const Estimator& estimator, const Problem& problem) {
  return estimator.kind == EstimatorKind::least_squares ||
         (estimator.kind == EstimatorKind::ridge && !estimator.lambda && problem.noise_variance == 0.0);
}

/// lambda of ridge, 0 for least squares.
double penalty(const Estimator& estimator, const Problem& problem, int task) {
  if (estimator.kind == EstimatorKind::least_squares) return 0.0;
  // lambda = sigma^2/a_i, a_i = P_i/d_i
  return estimator.lambda.value_or(problem.noise_variance * dimension(problem, task) / problem.signal_power(task));
}

/// Exact ell_i of least squares; empty where it is infinite.
std::optional<double> least_squares_loss(const Problem& problem, int task) {
  const double d = dimension(problem, task);
  const double length = problem.context_length;
  const double unseen = std::max(0.0, 1.0 - length / d);
  if (problem.noise_variance == 0.0) return 0.5 * problem.signal_power(task) * unseen;
  if (std::abs(length - d) <= 1.0) return std::nullopt;
  // ell_i = (P_i/2) max(0, 1 - L/d_i) + (sigma^2/2) min(L, d_i)/(|L - d_i| - 1)      theory: eq:least-squares-loss
  const double inverse = std::min(length, d) / (std::abs(length - d) - 1.0);
  return 0.5 * (problem.signal_power(task) * unseen + problem.noise_variance * inverse);
}

double gradient_step_loss(const Estimator& estimator, const Problem& problem, int task) {
  const double eta = rate(estimator, problem, task);
  const double length = problem.context_length;
  const double cost = dimension(problem, task) * problem.noise_factor(task);
  // ell_i = (P_i/2) {1 - 2 eta k + eta^2 k (L + d_i phi_i + 1 - b)/L}; k = 1, b = 0, or de-biased k = 1 - 1/L, b = 1
  //                                                                           theory: eq:gradient-step-loss
  const bool debiased = estimator.kind == EstimatorKind::debiased_gradient_step;
  const double kept = debiased ? 1.0 - 1.0 / length : 1.0;
  const double spread = (length + cost + (debiased ? 0.0 : 1.0)) / length;
  return 0.5 * problem.signal_power(task) * (1.0 - 2.0 * eta * kept + eta * eta * kept * spread);
}

}  // namespace

const std::vector<EstimatorInfo>& estimator_kinds() {
  static const std::vector<EstimatorInfo> kinds{
      {EstimatorKind::ridge, "ridge", "ridge regression with the Bayes-optimal lambda of the training law", false},
      {EstimatorKind::least_squares, "least-squares", "least squares, of minimum norm when L < d_i", false},
      {EstimatorKind::gradient_step, "gradient-step", "one gradient step from zero, at its best or a given eta", true},
      {EstimatorKind::debiased_gradient_step, "debiased-gradient-step",
       "one gradient step on responses less their mean over the context", true},
      {EstimatorKind::averaging, "averaging", "the mean of y_l x_l: a gradient step with eta = 1", false},
  };
  return kinds;
}

double rate(const Estimator& estimator, const Problem& problem, int task) {
  if (estimator.kind == EstimatorKind::averaging) return 1.0;
  if (estimator.rate) return *estimator.rate;
  // eta = L/(L + d_i phi_i + 1), de-biased L/(L + d_i phi_i)                       theory: eq:best-rate
  const double cost = dimension(problem, task) * problem.noise_factor(task);
  const double extra = estimator.kind == EstimatorKind::debiased_gradient_step ? 0.0 : 1.0;
  return problem.context_length / (problem.context_length + cost + extra);
}

std::optional<double> exact_loss(const Estimator& estimator, const Problem& problem) {
  if (estimator.kind == EstimatorKind::ridge && !inverts(estimator, problem)) return std::nullopt;
  double loss = 0.0;
  for (int i = 0; i < problem.tasks(); ++i) {
    const std::optional<double> own = inverts(estimator, problem)
                                          ? least_squares_loss(problem, i)
                                          : std::optional(gradient_step_loss(estimator, problem, i));
    if (!own) return std::nullopt;
    loss += *own;
  }
  return loss;
}

int finite_moments(const Estimator& estimator, const Problem& problem, double noise_variance) {
  if (!inverts(estimator, problem) || noise_variance == 0.0) return 2;
  int moments = 2;
  for (const int d : problem.task_dimensions) {
    const int distance = std::abs(problem.context_length - d);
    moments = std::min(moments, distance <= 1 ? 0 : (distance <= 3 ? 1 : 2));
  }
  return moments;
}

/// What the estimators of one task need of one context: X is d_i x L, S = X X^T.
struct EstimatorLosses::Block {
  std::size_t task;
  double task_variance;  ///< a_i = s_y^2 lambda_i
  Eigen::Index rank;     ///< of S, almost surely min(L, d_i)
  Eigen::VectorXd query;
  Eigen::VectorXd passed, passed_centred;  ///< S q and X H X^T q, H = 1 - 1 1^T/L
  Eigen::VectorXd eigenvalues;             ///< of S, ascending; empty unless needed
  Eigen::VectorXd components;              ///< of q in its eigenbasis
};

EstimatorLosses::EstimatorLosses(const Problem& problem, std::vector<Estimator> estimators, double noise_variance)
    : problem_(problem), estimators_(std::move(estimators)), noise_variance_(noise_variance) {
  spectrum_needed_ = false;
  for (const Estimator& estimator : estimators_) {
    const bool step = estimator.kind != EstimatorKind::ridge && estimator.kind != EstimatorKind::least_squares;
    spectrum_needed_ = spectrum_needed_ || !step;
    rates_.emplace_back();
    for (int i = 0; i < problem.tasks(); ++i) {
      rates_.back().push_back(step ? rate(estimator, problem, i) : penalty(estimator, problem, i));
    }
  }
}

void EstimatorLosses::operator()(const CovariateView& context, std::span<double> losses) {
  std::fill(losses.begin(), losses.end(), 0.0);
  const Eigen::Index length = problem_.context_length;
  const auto stride = static_cast<Eigen::Index>(padded(static_cast<std::size_t>(length)));
  for (int i = 0; i < problem_.tasks(); ++i) {
    const Eigen::Index begin = problem_.block_begin(i);
    const Eigen::Index size = problem_.task_dimensions[static_cast<std::size_t>(i)];
    const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> tokens(context.covariates + begin * stride, size, length,
                                                                   Eigen::OuterStride<>(stride));
    Block block{static_cast<std::size_t>(i),
                problem_.signal_power(i) / static_cast<double>(size),
                std::min(length, size),
                Eigen::Map<const Eigen::VectorXd>(context.query + begin, size),
                {},
                {},
                {},
                {}};
    Eigen::VectorXd overlap = tokens.transpose() * block.query;
    block.passed.noalias() = tokens * overlap;
    overlap.array() -= overlap.mean();
    block.passed_centred.noalias() = tokens * overlap;
    if (spectrum_needed_) {
      const Eigen::MatrixXd gram = tokens * tokens.transpose();
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> spectrum(gram);
      block.eigenvalues = spectrum.eigenvalues();
      block.components.noalias() = spectrum.eigenvectors().transpose() * block.query;
    }
    for (std::size_t k = 0; k < estimators_.size(); ++k) losses[k] += loss(k, block);
  }
}

/// With the estimate A y of s_y G_i:  ell_i = (1/2) { a_i |(1 - A X^T)^T q|^2 + sigma^2 |A^T q|^2 }
///                                                                               theory: eq:estimator-loss
double EstimatorLosses::loss(std::size_t estimator, const Block& block) const {
  const Estimator& which = estimators_[estimator];
  double bias = 0.0;
  double variance = 0.0;
  if (which.kind == EstimatorKind::ridge || which.kind == EstimatorKind::least_squares) {
    // A = (S + lambda)^-1 X, lambda = sigma^2/a_i of the training law; lambda = 0: the pseudo-inverse
    //                                                                           theory: eq:ridge-estimator
    const double lambda = rates_[estimator][block.task];
    const Eigen::Index size = block.eigenvalues.size();
    for (Eigen::Index k = 0; k < size; ++k) {
      const double square = block.components(k) * block.components(k);
      const bool seen = k >= size - block.rank;
      const double s = seen ? block.eigenvalues(k) : 0.0;
      const double shrunk = seen ? lambda / (s + lambda) : 1.0;
      bias += square * shrunk * shrunk;
      if (seen && noise_variance_ > 0.0) variance += square * s / ((s + lambda) * (s + lambda));
    }
  } else {
    // A = (eta/L) X, de-biased (eta/L) X (1 - 1 1^T/L)                          theory: eq:gradient-step-estimator
    const double factor = rates_[estimator][block.task] / problem_.context_length;
    const bool debiased = which.kind == EstimatorKind::debiased_gradient_step;
    const Eigen::VectorXd& passed = debiased ? block.passed_centred : block.passed;
    bias = (block.query - factor * passed).squaredNorm();
    variance = factor * factor * block.query.dot(passed);
  }
  return 0.5 * (block.task_variance * bias + noise_variance_ * variance);
}

}  // namespace iclflow
