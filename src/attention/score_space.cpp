#include "iclflow/attention/score_space.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

std::size_t size_of(Eigen::Index count) { return static_cast<std::size_t>(count); }

AlignedArray<double> normals_array(std::size_t count) { return aligned_zeros<double>(whole_groups<double>(count)); }

/// B (d x r, orthonormal columns) and R (r x c) with B R = directions.
void orthonormal_basis(const Eigen::MatrixXd& directions, Eigen::Index rank, Eigen::MatrixXd& basis,
                       Eigen::MatrixXd& mixing) {
  if (rank == directions.rows()) {
    basis.setIdentity(rank, rank);
    mixing = directions;
    return;
  }
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(directions);
  basis = qr.householderQ() * Eigen::MatrixXd::Identity(directions.rows(), rank);
  mixing = qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
}

}  // namespace

RotatedWeights::RotatedWeights(const ActingWeights& weights, const Rotations& basis) {
  const Eigen::Index d = basis.phi.rows();
  const Eigen::Index tasks = basis.psi.rows();
  for (std::size_t h = 0; h < weights.key_query.size(); ++h) {
    const Matrix& m = weights.key_query[h];
    const Matrix& a = weights.output_value[h];
    heads.push_back(
        {basis.phi.transpose() * m.topRows(d) * basis.phi, basis.psi.transpose() * m.bottomRows(tasks) * basis.phi,
         basis.psi.transpose() * a.leftCols(d) * basis.phi, basis.psi.transpose() * a.rightCols(tasks) * basis.psi});
    responses_scored = responses_scored || (m.bottomRows(tasks).array() != 0.0).any();
  }
}

ScoreSpaceLoss::ScoreSpaceLoss(const Problem& problem)
    : heads_(problem.heads),
      dimension_(problem.dimension()),
      tasks_(problem.tasks()),
      length_(problem.context_length),
      largest_rank_(std::min(2 * heads_, dimension_)),
      stride_(padded(size_of(length_))),
      noise_variance_(problem.noise_variance),
      response_factor_(problem.response_factor()),
      normals_(normals_array(size_of(dimension_))),
      signal_(normals_array(size_of(dimension_))),
      noise_(normals_array(size_of(tasks_) * stride_)),
      pooled_noise_(aligned_zeros<double>(size_of(heads_) * padded(size_of(tasks_)))),
      attention_(size_of(largest_rank_), size_of(heads_), size_of(length_)),
      noise_directions_(tasks_, heads_) {
  for (int i = 0; i <= problem.tasks(); ++i) block_begin_.push_back(problem.block_begin(i));
  for (const double lambda : problem.signal_variance) {
    task_variance_.push_back(response_factor_ * response_factor_ * lambda);
  }
  for (const int task : problem.task_of_coordinate()) {
    signal_deviation_.push_back(std::sqrt(problem.signal_variance[static_cast<std::size_t>(task)]));
  }
}

double ScoreSpaceLoss::operator()(const RotatedWeights& weights, const StreamKey& key) {
  std::uint32_t group = fill_normals(key, 0, normals_.get(), whole_groups<double>(size_of(dimension_)));
  query_ = Eigen::Map<const Eigen::VectorXd>(normals_.get(), dimension_);
  const Columns directions = score_directions(weights, key, group);
  rank_ = std::min(directions.cols(), dimension_);
  orthonormal_basis(directions, rank_, basis_, mixing_);
  attention_.set_rank(size_of(rank_));
  fill_normals(key, group, attention_.coordinates(), whole_groups<double>(size_of(rank_) * stride_));
  return loss(weights);
}

double ScoreSpaceLoss::operator()(const RotatedWeights& weights, const CovariateView& context, const StreamKey& key) {
  query_ = Eigen::Map<const Eigen::VectorXd>(context.query, dimension_);
  std::uint32_t group = context.next_group;
  mixing_ = score_directions(weights, key, group);
  // All of the covariates are known: B = 1, and nothing orthogonal to it is left.
  reserve_rank(dimension_);
  basis_.setIdentity(dimension_, dimension_);
  std::copy_n(context.covariates, size_of(rank_) * stride_, attention_.coordinates());
  return loss(weights);
}

/// d x H: M_X q, or d x 2H with the YX block: followed by the directions that read responses too.
ScoreSpaceLoss::Columns ScoreSpaceLoss::score_directions(const RotatedWeights& weights, const StreamKey& key,
                                                         std::uint32_t& group) {
  Columns directions(dimension_, weights.responses_scored ? 2 * heads_ : heads_);
  for (Eigen::Index h = 0; h < heads_; ++h) directions.col(h).noalias() = weights.heads[size_of(h)].xx * query_;
  if (!weights.responses_scored) return directions;
  group = draw_responses(key, group);
  // y_l = s_y G^T x_l + eps_l, so a score is x_l . (M_X q + s_y G M_Y q) + eps_l . M_Y q
  for (Eigen::Index h = 0; h < heads_; ++h) noise_directions_.col(h).noalias() = weights.heads[size_of(h)].yx * query_;
  directions.rightCols(heads_) = directions.leftCols(heads_) + task_weights_ * noise_directions_;
  return directions;
}

double ScoreSpaceLoss::loss(const RotatedWeights& weights) {
  attend(0, false, plain_);
  double loss = integrated_loss(weights, plain_);
  if (weights.responses_scored) {
    // The attention without the block is the current one.
    loss -= drawn_loss(weights, plain_);
    attend(heads_, noise_variance_ > 0.0, full_);
    loss += drawn_loss(weights, full_);
  }
  return loss;
}

/// Draws G and eps; returns the first group of normals not used.
std::uint32_t ScoreSpaceLoss::draw_responses(const StreamKey& key, std::uint32_t group) {
  group = fill_normals(key, group, signal_.get(), whole_groups<double>(size_of(dimension_)));
  task_weights_.setZero(dimension_, tasks_);
  for (Eigen::Index k = 0; k < tasks_; ++k) {
    for (Eigen::Index j = block_begin_[size_of(k)]; j < block_begin_[size_of(k) + 1]; ++j) {
      task_weights_(j, k) = response_factor_ * signal_deviation_[size_of(j)] * signal_[size_of(j)];
    }
  }
  if (noise_variance_ == 0.0) return group;
  const std::size_t count = size_of(tasks_) * stride_;
  group = fill_normals(key, group, noise_.get(), whole_groups<double>(count));
  const double deviation = std::sqrt(noise_variance_);
  std::for_each_n(noise_.get(), count, [&](double& eps) { eps *= deviation; });
  return group;
}

/// Sets r, with room for it.
void ScoreSpaceLoss::reserve_rank(Eigen::Index rank) {
  rank_ = rank;
  if (rank_ > largest_rank_) {
    largest_rank_ = rank_;
    attention_ = ScoreSpaceAttention(size_of(rank_), size_of(heads_), size_of(length_));
  }
  attention_.set_rank(size_of(rank_));
}

double ScoreSpaceLoss::operator()(const RotatedWeights& weights, const Eigen::VectorXd& query, const Columns& basis,
                                  const double* coordinates) {
  query_ = query;
  basis_ = basis;
  reserve_rank(basis.cols());
  mixing_.resize(rank_, heads_);
  for (Eigen::Index h = 0; h < heads_; ++h) {
    mixing_.col(h).noalias() = basis_.transpose() * (weights.heads[size_of(h)].xx * query_);
  }
  std::copy_n(coordinates, size_of(rank_) * stride_, attention_.coordinates());
  attend(0, false, plain_);
  return integrated_loss(weights, plain_);
}

/// Softmax over tokens with scores Z R[:, first + h] (+ eps_l . M_Y^h q), its pooled coordinates and overlaps.
void ScoreSpaceLoss::attend(Eigen::Index first, bool noise_scored, Attended& out) {
  for (Eigen::Index h = 0; h < heads_; ++h) {
    std::copy_n(mixing_.col(first + h).data(), size_of(rank_), attention_.mixing(size_of(h)));
  }
  attention_.score();
  for (Eigen::Index h = 0; noise_scored && h < heads_; ++h) {
    for (Eigen::Index i = 0; i < tasks_; ++i) {
      add_scaled(noise_.get() + size_of(i) * stride_, noise_directions_(i, h), stride_,
                 attention_.attention(size_of(h)));
    }
  }
  attention_.attend();
  using Strided = Eigen::Map<const Columns, 0, Eigen::OuterStride<>>;
  const Eigen::OuterStride<> stride(static_cast<Eigen::Index>(attention_.pooled_stride()));
  out.pooled = Strided(attention_.pooled(0), rank_, heads_, stride);
  out.overlap = Strided(attention_.overlap(0), heads_, heads_, stride);
  out.z.noalias() = basis_ * out.pooled;
}

/// sum_l p^h_l eps_l under the current attention, I x H.
ScoreSpaceLoss::Columns ScoreSpaceLoss::pooled_noise() {
  const std::size_t row = padded(size_of(tasks_));
  pool(noise_.get(), stride_, size_of(tasks_), attention_.attention(0), size_of(heads_), pooled_noise_.get(), row);
  return Eigen::Map<const Columns, 0, Eigen::OuterStride<>>(pooled_noise_.get(), tasks_, heads_,
                                                            Eigen::OuterStride<>(static_cast<Eigen::Index>(row)));
}

/// Given q and Z, with G, eps and the covariates' part orthogonal to B integrated out:
///   ell = (1/2) sum_ik a_k { |delta_ik q_Jk - z_Jk u_ik|^2 + tau_k u_ik^T C u_ik } + (sigma^2/2) sum_ik u_ik^T C u_ik
///       + (1/2) { |sum_h U_X^h z^h|^2 + sum_hh' C_hh' <U_X^h Pi, U_X^h'> }            theory: eq:score-space-loss
double ScoreSpaceLoss::integrated_loss(const RotatedWeights& weights, const Attended& at) const {
  double twice = 0.0;
  Eigen::VectorXd u(heads_);
  for (Eigen::Index k = 0; k < tasks_; ++k) {
    const Eigen::Index begin = block_begin_[size_of(k)];
    const Eigen::Index size = block_begin_[size_of(k) + 1] - begin;
    const double variance = task_variance_[size_of(k)];
    const double tau = static_cast<double>(size) - basis_.middleRows(begin, size).squaredNorm();
    for (Eigen::Index i = 0; i < tasks_; ++i) {
      for (Eigen::Index h = 0; h < heads_; ++h) u(h) = weights.heads[size_of(h)].uy(i, k);
      Eigen::VectorXd gap = -at.z.middleRows(begin, size) * u;
      if (i == k) gap += query_.segment(begin, size);
      twice += variance * gap.squaredNorm() + (variance * tau + noise_variance_) * u.dot(at.overlap * u);
    }
  }
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(tasks_);
  std::vector<Matrix> value;
  for (Eigen::Index h = 0; h < heads_; ++h) {
    value.push_back(weights.heads[size_of(h)].ux);
    mean.noalias() += value.back() * at.z.col(h);
  }
  return 0.5 * (twice + mean.squaredNorm() + orthogonal_power(at, value));
}

/// Loss of the current attention at the drawn G and eps; only the covariates' part orthogonal to B is integrated out.
double ScoreSpaceLoss::drawn_loss(const RotatedWeights& weights, const Attended& at) {
  Eigen::VectorXd residual = -task_weights_.transpose() * query_;
  Columns read_noise = Columns::Zero(tasks_, heads_);
  if (noise_variance_ > 0.0) read_noise = pooled_noise();
  std::vector<Matrix> value;
  for (Eigen::Index h = 0; h < heads_; ++h) {
    const RotatedWeights::Head& head = weights.heads[size_of(h)];
    value.emplace_back(head.uy * task_weights_.transpose() + head.ux);  // N^h = s_y U_Y G^T + U_X
    residual.noalias() += value.back() * at.z.col(h) + head.uy * read_noise.col(h);
  }
  return 0.5 * (residual.squaredNorm() + orthogonal_power(at, value));
}

/// sum_hh' C_hh' <N^h Pi, N^h'>, Pi = 1 - B B^T; value = N (I x d).
double ScoreSpaceLoss::orthogonal_power(const Attended& at, const std::vector<Matrix>& value) const {
  std::vector<Matrix> kept;  // N^h B
  for (const Matrix& n : value) kept.emplace_back(n * basis_);
  double sum = 0.0;
  for (std::size_t h = 0; h < value.size(); ++h) {
    for (std::size_t g = 0; g < value.size(); ++g) {
      sum += at.overlap(static_cast<Eigen::Index>(h), static_cast<Eigen::Index>(g)) *
             (value[h].cwiseProduct(value[g]).sum() - kept[h].cwiseProduct(kept[g]).sum());
    }
  }
  return sum;
}

}  // namespace iclflow
