#include "iclflow/attention/evaluation_set.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>

#include "iclflow/attention/kernels.hpp"
#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

using Columns = Eigen::MatrixXd;  // column-major: one column per head
constexpr std::size_t partial_sums = 32;

std::size_t size_of(Eigen::Index count) { return static_cast<std::size_t>(count); }

/// Weights in the Phi, Psi basis, where the law of the data is block diagonal.
struct RotatedHead {
  Matrix xx;  ///< d x d: scores from covariates
  Matrix yx;  ///< I x d: scores from responses
  Matrix ux;  ///< I x d: values from covariates
  Matrix uy;  ///< I x I: values from responses
};

/// Attention of all heads for one choice of scores, in score space.
struct Attended {
  Columns pooled;   ///< m = Z^T P, r x H
  Columns z;        ///< B m, d x H
  Columns overlap;  ///< C = P^T P, H x H
};

}  // namespace

struct EvaluationSet::Law {
  Eigen::Index heads, dimension, tasks, length;
  Eigen::Index largest_rank;  ///< r with the YX block: directions with and without it
  std::size_t stride;
  double noise_variance, response_factor;
  std::vector<Eigen::Index> block_begin;
  std::vector<double> task_variance;     ///< a_k = s_y^2 lambda_k
  std::vector<double> signal_deviation;  ///< sqrt(lambda) per coordinate
};

struct EvaluationSet::Worker {
  AlignedArray<double> query, signal, coordinates,
      noise;                                          ///< q (d), Ghat (d), Z (r x stride), eps / sigma (I x stride)
  AlignedArray<double> attention, direction, pooled;  ///< H x stride, H x padded(r), H x padded(max(r, I))
  Attended plain, full;
};

namespace {

/// B (d x r, orthonormal columns) and R (r x c) with B R = directions.
void orthonormal_basis(const Columns& directions, Eigen::Index rank, Columns& basis, Columns& coordinates) {
  if (rank == directions.rows()) {
    basis.setIdentity(rank, rank);
    coordinates = directions;
    return;
  }
  const Eigen::HouseholderQR<Columns> qr(directions);
  basis = qr.householderQ() * Columns::Identity(directions.rows(), rank);
  coordinates = qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
}

}  // namespace

EvaluationSet::EvaluationSet(const Problem& problem, const Rotations& basis, std::uint64_t seed, std::size_t contexts,
                             ThreadTeam& team)
    : basis_(basis), seed_(seed), contexts_(contexts), team_(team) {
  auto law = std::make_unique<Law>();
  law->heads = problem.heads;
  law->dimension = problem.dimension();
  law->tasks = problem.tasks();
  law->length = problem.context_length;
  law->largest_rank = std::min(2 * law->heads, law->dimension);
  law->stride = padded(size_of(law->length));
  law->noise_variance = problem.noise_variance;
  law->response_factor = problem.response_factor();
  for (int i = 0; i <= problem.tasks(); ++i) law->block_begin.push_back(problem.block_begin(i));
  for (const double lambda : problem.signal_variance) {
    law->task_variance.push_back(law->response_factor * law->response_factor * lambda);
  }
  for (const int task : problem.task_of_coordinate()) {
    law->signal_deviation.push_back(std::sqrt(problem.signal_variance[static_cast<std::size_t>(task)]));
  }
  const std::size_t d = size_of(law->dimension);
  const std::size_t h = size_of(law->heads);
  const std::size_t stride = law->stride;
  for (std::size_t k = 0; k < team.size(); ++k) {
    auto worker = std::make_unique<Worker>();
    worker->query = aligned_zeros<double>(whole_groups<double>(d));
    worker->signal = aligned_zeros<double>(whole_groups<double>(d));
    worker->coordinates = aligned_zeros<double>(whole_groups<double>(size_of(law->largest_rank) * stride));
    worker->noise = aligned_zeros<double>(whole_groups<double>(size_of(law->tasks) * stride));
    worker->attention = aligned_zeros<double>(h * stride);
    worker->direction = aligned_zeros<double>(h * padded(size_of(law->largest_rank)));
    worker->pooled = aligned_zeros<double>(h * padded(size_of(std::max(law->largest_rank, law->tasks))));
    workers_.push_back(std::move(worker));
  }
  law_ = std::move(law);
}

EvaluationSet::~EvaluationSet() = default;

namespace {

template <typename Law, typename Worker>
class ContextLoss {
 public:
  ContextLoss(const Law& law, const std::vector<RotatedHead>& heads, bool responses_scored, Worker& worker)
      : law_(law),
        heads_(heads),
        responses_scored_(responses_scored),
        worker_(worker),
        noisy_(law.noise_variance > 0.0),
        noise_directions_(law.tasks, law.heads) {}

  double operator()(const StreamKey& key) {
    const auto d = size_of(law_.dimension);
    std::uint32_t group = fill_normals(key, 0, worker_.query.get(), whole_groups<double>(d));
    const Eigen::Map<const Eigen::VectorXd> q(worker_.query.get(), law_.dimension);
    Columns directions(law_.dimension, responses_scored_ ? 2 * law_.heads : law_.heads);
    for (Eigen::Index h = 0; h < law_.heads; ++h) directions.col(h).noalias() = head(h).xx * q;
    if (responses_scored_) {
      group = draw_responses(key, group);
      // y_l = s_y G^T x_l + eps_l, so a score is x_l . (M_X q + s_y G M_Y q) + eps_l . M_Y q
      for (Eigen::Index h = 0; h < law_.heads; ++h) noise_directions_.col(h).noalias() = head(h).yx * q;
      directions.rightCols(law_.heads) = directions.leftCols(law_.heads) + task_weights_ * noise_directions_;
    }
    rank_ = std::min(directions.cols(), law_.dimension);
    orthonormal_basis(directions, rank_, basis_, coordinates_);
    fill_normals(key, group, worker_.coordinates.get(), whole_groups<double>(size_of(rank_) * law_.stride));

    attend(0, false, worker_.plain);
    double loss = integrated_loss(q, worker_.plain);
    if (responses_scored_) {
      // With the YX block minus without it, on the same tokens. The attention without it is the current one.
      loss -= drawn_loss(q, worker_.plain);
      attend(law_.heads, noisy_, worker_.full);
      loss += drawn_loss(q, worker_.full);
    }
    return loss;
  }

 private:
  const RotatedHead& head(Eigen::Index h) const { return heads_[size_of(h)]; }

  /// Draws G and eps; returns the first group of normals not used.
  std::uint32_t draw_responses(const StreamKey& key, std::uint32_t group) {
    group = fill_normals(key, group, worker_.signal.get(), whole_groups<double>(size_of(law_.dimension)));
    task_weights_.setZero(law_.dimension, law_.tasks);
    for (Eigen::Index k = 0; k < law_.tasks; ++k) {
      for (Eigen::Index j = law_.block_begin[size_of(k)]; j < law_.block_begin[size_of(k) + 1]; ++j) {
        task_weights_(j, k) = law_.response_factor * law_.signal_deviation[size_of(j)] * worker_.signal[size_of(j)];
      }
    }
    if (!noisy_) return group;
    const std::size_t count = size_of(law_.tasks) * law_.stride;
    group = fill_normals(key, group, worker_.noise.get(), whole_groups<double>(count));
    const double deviation = std::sqrt(law_.noise_variance);
    std::for_each_n(worker_.noise.get(), count, [&](double& eps) { eps *= deviation; });
    return group;
  }

  /// Softmax over tokens with scores Z R[:, first + h] (+ eps_l . w^h), its pooled coordinates and overlaps.
  void attend(Eigen::Index first, bool noise_scored, Attended& out) {
    const std::size_t heads = size_of(law_.heads);
    const std::size_t rank = size_of(rank_);
    const std::size_t row = padded(size_of(law_.largest_rank));
    double* p = worker_.attention.get();
    for (std::size_t h = 0; h < heads; ++h) {
      std::copy_n(coordinates_.col(first + static_cast<Eigen::Index>(h)).data(), rank,
                  worker_.direction.get() + h * row);
    }
    scores(worker_.coordinates.get(), law_.stride, rank, worker_.direction.get(), row, heads, p);
    for (std::size_t h = 0; noise_scored && h < heads; ++h) {
      for (Eigen::Index i = 0; i < law_.tasks; ++i) {
        add_scaled(worker_.noise.get() + size_of(i) * law_.stride, noise_directions_(i, static_cast<Eigen::Index>(h)),
                   law_.stride, p + h * law_.stride);
      }
    }
    softmax(p, law_.stride, size_of(law_.length), heads);
    out.pooled = pooled(worker_.coordinates.get(), rank_);
    out.z.noalias() = basis_ * out.pooled;
    const Eigen::Map<const Columns> weights(p, static_cast<Eigen::Index>(law_.stride), law_.heads);
    out.overlap.noalias() = weights.transpose() * weights;
  }

  /// sum_l p^h_l of each of `rows` token rows under the current attention, rows x H.
  Columns pooled(const double* tokens, Eigen::Index rows) {
    const std::size_t row = padded(size_of(std::max(law_.largest_rank, law_.tasks)));
    pool(tokens, law_.stride, size_of(rows), worker_.attention.get(), size_of(law_.heads), worker_.pooled.get(), row);
    return Eigen::Map<const Columns, 0, Eigen::OuterStride<>>(worker_.pooled.get(), rows, law_.heads,
                                                              Eigen::OuterStride<>(static_cast<Eigen::Index>(row)));
  }

  /// Given q and Z, with G, eps and the covariates' part orthogonal to B integrated out:
  ///   ell = (1/2) sum_ik a_k { |delta_ik q_Jk - z_Jk u_ik|^2 + tau_k u_ik^T C u_ik } + (sigma^2/2) sum_ik u_ik^T C
  ///   u_ik
  ///       + (1/2) { |sum_h U_X^h z^h|^2 + sum_hh' C_hh' <U_X^h Pi, U_X^h'> }          theory: eq:score-space-loss
  double integrated_loss(const Eigen::Map<const Eigen::VectorXd>& q, const Attended& at) const {
    double twice = 0.0;
    Eigen::VectorXd u(law_.heads);
    for (Eigen::Index k = 0; k < law_.tasks; ++k) {
      const Eigen::Index begin = law_.block_begin[size_of(k)];
      const Eigen::Index size = law_.block_begin[size_of(k) + 1] - begin;
      const double variance = law_.task_variance[size_of(k)];
      const double tau = static_cast<double>(size) - basis_.middleRows(begin, size).squaredNorm();
      for (Eigen::Index i = 0; i < law_.tasks; ++i) {
        for (Eigen::Index h = 0; h < law_.heads; ++h) u(h) = head(h).uy(i, k);
        Eigen::VectorXd gap = -at.z.middleRows(begin, size) * u;
        if (i == k) gap += q.segment(begin, size);
        twice += variance * gap.squaredNorm() + (variance * tau + law_.noise_variance) * u.dot(at.overlap * u);
      }
    }
    return 0.5 * (twice + covariate_value_power(at));
  }

  double covariate_value_power(const Attended& at) const {
    Eigen::VectorXd mean = Eigen::VectorXd::Zero(law_.tasks);
    std::vector<Columns> kept;
    for (Eigen::Index h = 0; h < law_.heads; ++h) {
      mean.noalias() += head(h).ux * at.z.col(h);
      kept.emplace_back(head(h).ux * basis_);
    }
    return mean.squaredNorm() +
           orthogonal_power(at, kept, [this](Eigen::Index h) -> const Matrix& { return head(h).ux; });
  }

  /// sum_hh' C_hh' <N^h Pi, N^h'>, Pi = 1 - B B^T; kept = N^h B.
  template <typename Value>
  double orthogonal_power(const Attended& at, const std::vector<Columns>& kept, const Value& value) const {
    double sum = 0.0;
    for (Eigen::Index h = 0; h < law_.heads; ++h) {
      for (Eigen::Index g = 0; g < law_.heads; ++g) {
        sum += at.overlap(h, g) *
               (value(h).cwiseProduct(value(g)).sum() - kept[size_of(h)].cwiseProduct(kept[size_of(g)]).sum());
      }
    }
    return sum;
  }

  /// Loss of the current attention at the drawn G and eps; only the covariates' part orthogonal to B is integrated out.
  double drawn_loss(const Eigen::Map<const Eigen::VectorXd>& q, const Attended& at) {
    Eigen::VectorXd residual = -task_weights_.transpose() * q;
    Columns pooled_noise = Columns::Zero(law_.tasks, law_.heads);
    if (noisy_) pooled_noise = pooled(worker_.noise.get(), law_.tasks);
    std::vector<Matrix> value;
    std::vector<Columns> kept;
    for (Eigen::Index h = 0; h < law_.heads; ++h) {
      value.emplace_back(head(h).uy * task_weights_.transpose() + head(h).ux);  // N^h = s_y U_Y G^T + U_X
      kept.emplace_back(value.back() * basis_);
      residual.noalias() += value.back() * at.z.col(h) + head(h).uy * pooled_noise.col(h);
    }
    return 0.5 * (residual.squaredNorm() +
                  orthogonal_power(at, kept, [&](Eigen::Index h) -> const Matrix& { return value[size_of(h)]; }));
  }

  const Law& law_;
  const std::vector<RotatedHead>& heads_;
  bool responses_scored_;
  Worker& worker_;
  bool noisy_;
  Eigen::Index rank_ = 0;
  Columns basis_, coordinates_;  ///< B (d x r); R (r x H, or r x 2H with the YX block: without it, then with it)
  Columns task_weights_;         ///< s_y Ghat, d x I
  Columns noise_directions_;     ///< M_Y q, I x H
};

}  // namespace

LossEstimate EvaluationSet::operator()(const ActingWeights& weights) {
  const Eigen::Index d = law_->dimension;
  std::vector<RotatedHead> heads;
  bool responses_scored = false;
  for (std::size_t h = 0; h < size_of(law_->heads); ++h) {
    const Matrix& m = weights.key_query[h];
    const Matrix& a = weights.output_value[h];
    heads.push_back({basis_.phi.transpose() * m.topRows(d) * basis_.phi,
                     basis_.psi.transpose() * m.bottomRows(law_->tasks) * basis_.phi,
                     basis_.psi.transpose() * a.leftCols(d) * basis_.phi,
                     basis_.psi.transpose() * a.rightCols(law_->tasks) * basis_.psi});
    responses_scored = responses_scored || (m.bottomRows(law_->tasks).array() != 0.0).any();
  }
  std::array<double, partial_sums> sum{};
  std::array<double, partial_sums> square_sum{};
  team_.run(partial_sums, [&](std::size_t part, std::size_t worker) {
    ContextLoss<Law, Worker> loss(*law_, heads, responses_scored, *workers_[worker]);
    for (std::size_t c = part * contexts_ / partial_sums; c < (part + 1) * contexts_ / partial_sums; ++c) {
      const double value = loss({seed_, Stream::evaluation, 0, static_cast<std::uint32_t>(c)});
      sum[part] += value;
      square_sum[part] += value * value;
    }
  });
  double total = 0.0;
  double total_square = 0.0;
  for (std::size_t part = 0; part < partial_sums; ++part) {
    total += sum[part];
    total_square += square_sum[part];
  }
  const auto count = static_cast<double>(contexts_);
  const double mean = total / count;
  const double variance = std::max(0.0, total_square / count - mean * mean);
  return {mean, std::sqrt(variance / std::max(1.0, count - 1.0))};
}

}  // namespace iclflow
