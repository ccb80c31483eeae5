#pragma once

#include <cmath>
#include <vector>

#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/random/normals.hpp"

/// The gradient in score space written a second time, token by token and context by context, from
/// theory/03-population-loss.md: matrices as they stand there, nothing shared with the fast code but the normals.
namespace plain {

struct ScoreSpaceSlope {
  double loss = 0.0;
  std::vector<iclflow::Matrix> w, u;  ///< per head: d x d, I x I
};

/// B with as many columns as heads (or d), by Gram-Schmidt in the order of the heads, signs of R's diagonal positive; a
/// direction within `tolerance` of the span of those before it has a zero column.
inline Eigen::MatrixXd score_basis(const Eigen::MatrixXd& directions, double tolerance = 2.8e-14) {
  const Eigen::Index d = directions.rows();
  if (directions.cols() >= d) return Eigen::MatrixXd::Identity(d, d);
  Eigen::MatrixXd basis = Eigen::MatrixXd::Zero(d, directions.cols());
  for (Eigen::Index h = 0; h < directions.cols(); ++h) {
    Eigen::VectorXd b = directions.col(h);
    for (int pass = 0; pass < 3; ++pass) b -= basis * (basis.transpose() * b);
    if (b.norm() > tolerance * directions.col(h).norm()) basis.col(h) = b.normalized();
    for (int pass = 0; pass < 3; ++pass) {
      const auto before = basis.leftCols(h);
      basis.col(h) -= before * (before.transpose() * basis.col(h));
    }
  }
  return basis;
}

/// ell | q, Z and its unbiased gradient. w, u: per head, in the Phi, Psi basis; z: L x r.
inline ScoreSpaceSlope score_space_slope(const iclflow::Problem& p, const std::vector<iclflow::Matrix>& w,
                                         const std::vector<iclflow::Matrix>& u, const Eigen::VectorXd& q,
                                         const Eigen::MatrixXd& basis, const Eigen::MatrixXd& z) {
  const auto heads = static_cast<Eigen::Index>(w.size());
  const auto at = [](Eigen::Index n) { return static_cast<std::size_t>(n); };
  const Eigen::Index d = q.size();
  const int tasks = p.tasks();
  Eigen::MatrixXd attention(z.rows(), heads);
  for (Eigen::Index h = 0; h < heads; ++h) {
    const Eigen::VectorXd score = z * (basis.transpose() * (w[at(h)] * q));
    attention.col(h) = (score.array() - score.maxCoeff()).exp();
    attention.col(h) /= attention.col(h).sum();
  }
  const Eigen::MatrixXd m = z.transpose() * attention;
  const Eigen::MatrixXd read = basis * m;
  const Eigen::MatrixXd overlap = attention.transpose() * attention;
  const Eigen::MatrixXd rest = Eigen::MatrixXd::Identity(d, d) - basis * basis.transpose();

  ScoreSpaceSlope slope;
  slope.u.assign(at(heads), iclflow::Matrix::Zero(tasks, tasks));
  Eigen::MatrixXd gamma = Eigen::MatrixXd::Zero(d, heads);
  Eigen::MatrixXd attention_slope = Eigen::MatrixXd::Zero(z.rows(), heads);
  Eigen::MatrixXd across = Eigen::MatrixXd::Zero(d, heads);  // sum_k a_k Pi[:, J_k] B_Jk { .. }
  for (int k = 0; k < tasks; ++k) {
    const int begin = p.block_begin(k);
    const int size = p.block_begin(k + 1) - begin;
    const double a = p.response_factor() * p.response_factor() * p.signal_variance[at(k)];
    const double tau = rest.diagonal().segment(begin, size).sum();
    const Eigen::VectorXd own = q.segment(begin, size);
    const Eigen::MatrixXd block = read.middleRows(begin, size);
    Eigen::MatrixXd n = Eigen::MatrixXd::Zero(heads, heads);
    for (int i = 0; i < tasks; ++i) {
      Eigen::VectorXd values(heads);
      for (Eigen::Index h = 0; h < heads; ++h) values(h) = u[at(h)](i, k);
      n += values * values.transpose();
      const Eigen::VectorXd gap = (i == k ? 1.0 : 0.0) * own - block * values;
      const double variance = values.dot(overlap * values);
      slope.loss += 0.5 * (a * (gap.squaredNorm() + tau * variance) + p.noise_variance * variance);
      const Eigen::VectorXd by_head =
          -a * (block.transpose() * gap) + (a * tau + p.noise_variance) * (overlap * values);
      for (Eigen::Index h = 0; h < heads; ++h) slope.u[at(h)](i, k) = by_head(h);
      if (i == k) gamma.middleRows(begin, size) -= a * own * values.transpose();
    }
    gamma.middleRows(begin, size) += a * block * n;
    attention_slope += (p.noise_variance + a * tau) * attention * n;
    for (Eigen::Index h = 0; h < heads; ++h) {
      const Eigen::VectorXd weighted = attention.col(h).cwiseProduct(attention * n.col(h));
      const Eigen::VectorXd inside = z.transpose() * weighted - m.col(h) * overlap.row(h).dot(n.col(h));
      across.col(h) += a * rest.middleCols(begin, size) * (basis.middleRows(begin, size) * inside);
    }
  }
  attention_slope += z * (basis.transpose() * gamma);
  for (Eigen::Index h = 0; h < heads; ++h) {
    const Eigen::VectorXd p_h = attention.col(h);
    const Eigen::VectorXd score_slope =
        p_h.array() * (attention_slope.col(h).array() - p_h.dot(attention_slope.col(h)));
    const Eigen::VectorXd direction =
        basis * (z.transpose() * score_slope) + (1.0 - overlap(h, h)) * (rest * gamma.col(h)) + across.col(h);
    slope.w.emplace_back(direction * q.transpose());
  }
  return slope;
}

/// The mean over contexts 0..contexts-1 of a key, with what is linear in q replaced by its mean as in the fast code:
///   D_h rows J_k: c_h { sum_g (a_k N_k)_gh c_g W^g_{J_k} - a_k u_kk^h E_{J_k} }; dW^h = D_h + mean of (Vbar_h - D_h q)
/// q^T, c_h = min(1, sqrt(2 ln L) / |W^h|), and (c V, c V) and (c V, q) products likewise for U and the loss.
inline ScoreSpaceSlope score_space_mean(const iclflow::Problem& p, const std::vector<iclflow::Matrix>& w,
                                        const std::vector<iclflow::Matrix>& u, const iclflow::StreamKey& key,
                                        std::size_t contexts) {
  constexpr std::size_t group = 16;
  const auto heads = w.size();
  const auto d = static_cast<std::size_t>(p.dimension());
  const std::size_t rank = std::min(heads, d);
  const auto length = static_cast<std::size_t>(p.context_length);
  const int tasks = p.tasks();
  const auto at = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  std::vector<double> c(heads);
  std::vector<iclflow::Matrix> scaled;
  for (std::size_t h = 0; h < heads; ++h) {
    const double longest = std::sqrt(2.0 * std::log(static_cast<double>(length)));
    c[h] = w[h].norm() > longest ? longest / w[h].norm() : 1.0;
    scaled.emplace_back(c[h] * w[h]);
  }
  std::vector<iclflow::Matrix> linear(heads, iclflow::Matrix::Zero(at(d), at(d)));
  for (int k = 0; k < tasks; ++k) {
    const int begin = p.block_begin(k);
    const int size = p.block_begin(k + 1) - begin;
    const double a = p.response_factor() * p.response_factor() * p.signal_variance[static_cast<std::size_t>(k)];
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t g = 0; g < heads; ++g) {
        const double shared = u[g].col(k).dot(u[h].col(k));
        linear[h].middleRows(begin, size) += c[h] * a * shared * scaled[g].middleRows(begin, size);
      }
      linear[h].block(begin, begin, size, size).diagonal().array() -= c[h] * a * u[h](k, k);
    }
  }
  ScoreSpaceSlope mean;
  mean.w = linear;
  mean.u.assign(heads, iclflow::Matrix::Zero(tasks, tasks));
  std::vector<double> normals(iclflow::whole_groups<double>(group * (d + length * rank)));
  const auto share = 1.0 / static_cast<double>(contexts);
  for (std::size_t context = 0; context < contexts; ++context) {
    const auto number = static_cast<std::uint32_t>(context / group);
    iclflow::fill_normals({key.seed, key.stream, key.step, number}, 0, normals.data(), normals.size());
    const double* mine = normals.data() + context % group;
    Eigen::VectorXd q(at(d));
    for (std::size_t j = 0; j < d; ++j) q(at(j)) = mine[j * group];
    Eigen::MatrixXd z(at(length), at(rank));
    for (std::size_t l = 0; l < length; ++l) {
      for (std::size_t k = 0; k < rank; ++k) z(at(l), at(k)) = mine[(d + l * rank + k) * group];
    }
    Eigen::MatrixXd directions(at(d), at(heads));
    Eigen::MatrixXd linear_part(at(d), at(heads));  // c V
    for (std::size_t h = 0; h < heads; ++h) {
      directions.col(at(h)) = w[h] * q;
      linear_part.col(at(h)) = scaled[h] * q;
    }
    const ScoreSpaceSlope one = score_space_slope(p, w, u, q, score_basis(directions), z);
    mean.loss += share * one.loss;
    for (std::size_t h = 0; h < heads; ++h) {
      mean.w[h] += share * (one.w[h] - linear[h] * q * q.transpose());
      mean.u[h] += share * one.u[h];
    }
    for (int k = 0; k < tasks; ++k) {
      const int begin = p.block_begin(k);
      const int size = p.block_begin(k + 1) - begin;
      const double a = p.response_factor() * p.response_factor() * p.signal_variance[static_cast<std::size_t>(k)];
      const auto rows = linear_part.middleRows(begin, size);
      mean.loss += 0.5 * share * a * (size - q.segment(begin, size).squaredNorm());
      Eigen::MatrixXd power = -(rows.transpose() * rows);
      Eigen::VectorXd aligned = -(rows.transpose() * q.segment(begin, size));
      for (std::size_t h = 0; h < heads; ++h) {
        aligned(at(h)) += scaled[h].block(begin, begin, size, size).trace();
        for (std::size_t g = 0; g < heads; ++g) {
          power(at(h), at(g)) +=
              scaled[h].middleRows(begin, size).cwiseProduct(scaled[g].middleRows(begin, size)).sum();
        }
      }
      for (int i = 0; i < tasks; ++i) {
        Eigen::VectorXd values(at(heads));
        for (std::size_t h = 0; h < heads; ++h) values(at(h)) = u[h](i, k);
        const Eigen::VectorXd slope = a * (power * values - (i == k ? 1.0 : 0.0) * aligned);
        mean.loss += 0.5 * share * a * (values.dot(power * values) - (i == k ? 2.0 : 0.0) * values.dot(aligned));
        for (std::size_t h = 0; h < heads; ++h) mean.u[h](i, k) += share * slope(at(h));
      }
    }
  }
  return mean;
}

}  // namespace plain
