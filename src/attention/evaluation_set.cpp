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
  Columns basis;    ///< B, d x r, orthonormal columns spanning the heads' directions
  Columns pooled;   ///< m = Z^T P, r x H
  Columns z;        ///< B m, d x H
  Columns overlap;  ///< C = P^T P, H x H
};

}  // namespace

struct EvaluationSet::Law {
  Eigen::Index heads, dimension, tasks, length, rank;
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

/// B and R with B R = directions, R upper triangular with non-negative diagonal, so that equal coordinates Z give
/// nearly equal scores when the directions are nearly equal.
void orthonormal_basis(const Columns& directions, Eigen::Index rank, Columns& basis, Columns& triangle) {
  if (rank == directions.rows()) {
    basis.setIdentity(rank, rank);
    triangle = directions;
    return;
  }
  const Eigen::HouseholderQR<Columns> qr(directions);
  basis = qr.householderQ() * Columns::Identity(directions.rows(), rank);
  triangle = qr.matrixQR().topRows(rank).triangularView<Eigen::Upper>();
  for (Eigen::Index k = 0; k < rank; ++k) {
    if (triangle(k, k) < 0.0) {
      triangle.row(k) *= -1.0;
      basis.col(k) *= -1.0;
    }
  }
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
  law->rank = std::min(law->heads, law->dimension);
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
    worker->coordinates = aligned_zeros<double>(whole_groups<double>(size_of(law->rank) * stride));
    worker->noise = aligned_zeros<double>(whole_groups<double>(size_of(law->tasks) * stride));
    worker->attention = aligned_zeros<double>(h * stride);
    worker->direction = aligned_zeros<double>(h * padded(size_of(law->rank)));
    worker->pooled = aligned_zeros<double>(h * padded(size_of(std::max(law->rank, law->tasks))));
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
      : law_(law), heads_(heads), responses_scored_(responses_scored), worker_(worker) {}

  double operator()(const StreamKey& key) {
    const auto d = size_of(law_.dimension);
    std::uint32_t group = fill_normals(key, 0, worker_.query.get(), whole_groups<double>(d));
    group = fill_normals(key, group, worker_.coordinates.get(), whole_groups<double>(size_of(law_.rank) * law_.stride));
    const Eigen::Map<const Eigen::VectorXd> q(worker_.query.get(), law_.dimension);

    Columns directions(law_.dimension, law_.heads);
    for (Eigen::Index h = 0; h < law_.heads; ++h) directions.col(h).noalias() = head(h).xx * q;
    attend(directions, nullptr, worker_.plain);
    double loss = integrated_loss(q, worker_.plain);
    if (responses_scored_) loss += response_score_correction(key, group, q, directions);
    return loss;
  }

 private:
  const RotatedHead& head(Eigen::Index h) const { return heads_[size_of(h)]; }

  /// Softmax over tokens with scores Z B^T a^h (+ eps_l . w^h), its pooled coordinates and overlaps.
  void attend(const Columns& directions, const Columns* noise_directions, Attended& out) {
    Columns triangle;
    orthonormal_basis(directions, law_.rank, out.basis, triangle);
    const std::size_t heads = size_of(law_.heads);
    const std::size_t rank = size_of(law_.rank);
    const std::size_t row = padded(rank);
    double* p = worker_.attention.get();
    for (std::size_t h = 0; h < heads; ++h) {
      std::copy_n(triangle.col(static_cast<Eigen::Index>(h)).data(), rank, worker_.direction.get() + h * row);
    }
    scores(worker_.coordinates.get(), law_.stride, rank, worker_.direction.get(), row, heads, p);
    if (noise_directions != nullptr) {
      for (std::size_t h = 0; h < heads; ++h) {
        for (Eigen::Index i = 0; i < law_.tasks; ++i) {
          add_scaled(worker_.noise.get() + size_of(i) * law_.stride,
                     (*noise_directions)(i, static_cast<Eigen::Index>(h)), law_.stride, p + h * law_.stride);
        }
      }
    }
    softmax(p, law_.stride, size_of(law_.length), heads);
    const std::size_t pooled_row = padded(size_of(std::max(law_.rank, law_.tasks)));
    pool(worker_.coordinates.get(), law_.stride, rank, p, heads, worker_.pooled.get(), pooled_row);
    out.pooled.resize(law_.rank, law_.heads);
    for (std::size_t h = 0; h < heads; ++h) {
      std::copy_n(worker_.pooled.get() + h * pooled_row, rank, out.pooled.col(static_cast<Eigen::Index>(h)).data());
    }
    out.z.noalias() = out.basis * out.pooled;
    const Eigen::Map<const Columns> weights(p, static_cast<Eigen::Index>(law_.stride), law_.heads);
    out.overlap.noalias() = weights.transpose() * weights;
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
      const double tau = static_cast<double>(size) - at.basis.middleRows(begin, size).squaredNorm();
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
      kept.emplace_back(head(h).ux * at.basis);
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

  /// Loss with the YX block minus loss without it, both at one drawn G and eps.
  double response_score_correction(const StreamKey& key, std::uint32_t group,
                                   const Eigen::Map<const Eigen::VectorXd>& q, const Columns& directions) {
    group = fill_normals(key, group, worker_.signal.get(), whole_groups<double>(size_of(law_.dimension)));
    Columns task_weights = Columns::Zero(law_.dimension, law_.tasks);  // s_y Ghat
    for (Eigen::Index k = 0; k < law_.tasks; ++k) {
      for (Eigen::Index j = law_.block_begin[size_of(k)]; j < law_.block_begin[size_of(k) + 1]; ++j) {
        task_weights(j, k) = law_.response_factor * law_.signal_deviation[size_of(j)] * worker_.signal[size_of(j)];
      }
    }
    const bool noisy = law_.noise_variance > 0.0;
    if (noisy) {
      fill_normals(key, group, worker_.noise.get(), whole_groups<double>(size_of(law_.tasks) * law_.stride));
      const double deviation = std::sqrt(law_.noise_variance);
      std::for_each_n(worker_.noise.get(), size_of(law_.tasks) * law_.stride, [&](double& eps) { eps *= deviation; });
    }
    // y_l = s_y G^T x_l + eps_l, so a score is x_l . (M_X q + s_y G M_Y q) + eps_l . M_Y q
    Columns noise_directions(law_.tasks, law_.heads);
    for (Eigen::Index h = 0; h < law_.heads; ++h) noise_directions.col(h).noalias() = head(h).yx * q;
    // worker_.attention still holds the softmax without the block.
    const double without = drawn_loss(q, task_weights, noisy, worker_.plain);
    attend(directions + task_weights * noise_directions, noisy ? &noise_directions : nullptr, worker_.full);
    return drawn_loss(q, task_weights, noisy, worker_.full) - without;
  }

  /// Loss of the current attention at given G and eps; only the covariates' part orthogonal to B is integrated out.
  double drawn_loss(const Eigen::Map<const Eigen::VectorXd>& q, const Columns& task_weights, bool noisy,
                    const Attended& at) {
    Eigen::VectorXd residual = -task_weights.transpose() * q;
    std::vector<Matrix> value;
    std::vector<Columns> kept;
    const std::size_t pooled_row = padded(size_of(std::max(law_.rank, law_.tasks)));
    if (noisy) {
      pool(worker_.noise.get(), law_.stride, size_of(law_.tasks), worker_.attention.get(), size_of(law_.heads),
           worker_.pooled.get(), pooled_row);
    }
    for (Eigen::Index h = 0; h < law_.heads; ++h) {
      value.emplace_back(head(h).uy * task_weights.transpose() + head(h).ux);  // N^h = s_y U_Y G^T + U_X
      kept.emplace_back(value.back() * at.basis);
      residual.noalias() += value.back() * at.z.col(h);
      if (noisy) {
        const Eigen::Map<const Eigen::VectorXd> pooled_noise(worker_.pooled.get() + size_of(h) * pooled_row,
                                                             law_.tasks);
        residual.noalias() += head(h).uy * pooled_noise;
      }
    }
    return 0.5 * (residual.squaredNorm() +
                  orthogonal_power(at, kept, [&](Eigen::Index h) -> const Matrix& { return value[size_of(h)]; }));
  }

  const Law& law_;
  const std::vector<RotatedHead>& heads_;
  bool responses_scored_;
  Worker& worker_;
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
