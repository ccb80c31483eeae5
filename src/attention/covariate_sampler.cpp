#include "iclflow/attention/covariate_sampler.hpp"

#include <Eigen/QR>
#include <cmath>
#include <stdexcept>

#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

using Rows = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

/// A square root of a covariance with eigenvalues ~ 1/k^2 and trace `size` in a Haar basis.
Eigen::MatrixXd skewed_root(int size, std::uint64_t seed) {
  Problem block;
  block.task_dimensions = {size};
  block.rotation = Rotation::random;
  block.rotation_seed = seed;
  Eigen::VectorXd eigenvalues(size);
  for (int k = 0; k < size; ++k) eigenvalues(k) = 1.0 / ((k + 1.0) * (k + 1.0));
  eigenvalues *= size / eigenvalues.sum();
  return rotations(block).phi * eigenvalues.cwiseSqrt().asDiagonal();
}

}  // namespace

CovariateSampler::CovariateSampler(const Problem& problem, const Shift& shift, std::uint64_t seed)
    : dimension_(problem.dimension()),
      length_(problem.context_length),
      stride_(padded(static_cast<std::size_t>(length_))),
      scale_(shift.input_scale),
      orthogonal_(shift.orthogonal_queries),
      query_(aligned_zeros<double>(whole_groups<double>(static_cast<std::size_t>(dimension_)))),
      covariates_(aligned_zeros<double>(whole_groups<double>(static_cast<std::size_t>(dimension_) * stride_))) {
  if (!shift.exists(problem)) throw std::invalid_argument("no query is orthogonal to as many covariates");
  for (int i = 0; i <= problem.tasks(); ++i) block_begin_.push_back(problem.block_begin(i));
  for (int i = 0; shift.skewed_covariates && i < problem.tasks(); ++i) {
    const auto task = static_cast<std::size_t>(i);
    roots_.push_back(skewed_root(problem.task_dimensions[task], seed + task));
  }
}

CovariateView CovariateSampler::operator()(const StreamKey& key) {
  const std::size_t d = static_cast<std::size_t>(dimension_);
  std::uint32_t group = fill_normals(key, 0, query_.get(), whole_groups<double>(d));
  group = fill_normals(key, group, covariates_.get(), whole_groups<double>(d * stride_));
  if (!roots_.empty()) skew();
  if (scale_ != 1.0) {
    for (std::size_t j = 0; j < d; ++j) query_[j] *= scale_;
    for (std::size_t k = 0; k < d * stride_; ++k) covariates_[k] *= scale_;
  }
  if (orthogonal_) orthogonalise();
  return {query_.get(), covariates_.get(), group};
}

void CovariateSampler::skew() {
  const auto stride = static_cast<Eigen::Index>(stride_);
  for (std::size_t i = 0; i < roots_.size(); ++i) {
    const Eigen::Index size = roots_[i].rows();
    Rows rows(covariates_.get() + block_begin_[i] * stride, size, stride, Eigen::OuterStride<>(stride));
    const Matrix normals = rows;
    rows.noalias() = roots_[i] * normals;
    Eigen::Map<Eigen::VectorXd> query(query_.get() + block_begin_[i], size);
    const Eigen::VectorXd normal = query;
    query.noalias() = roots_[i] * normal;
  }
}

/// q <- |q| (q - X X^+ q) / |q - X X^+ q|                                      theory: eq:orthogonal-query
void CovariateSampler::orthogonalise() {
  const Rows tokens(covariates_.get(), dimension_, length_, Eigen::OuterStride<>(static_cast<Eigen::Index>(stride_)));
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(tokens);
  const Eigen::MatrixXd span = qr.householderQ() * Eigen::MatrixXd::Identity(dimension_, length_);
  Eigen::Map<Eigen::VectorXd> query(query_.get(), dimension_);
  const double norm = query.norm();
  // Twice: what rounding leaves of the first projection goes with the second.
  for (int pass = 0; pass < 2; ++pass) query -= (span * (span.transpose() * query)).eval();
  query *= norm / query.norm();
}

}  // namespace iclflow
