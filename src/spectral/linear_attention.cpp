#include "iclflow/spectral/linear_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <stdexcept>
#include <utility>

namespace iclflow {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Views of one head in flat weights.
template <typename Vector>
auto head(const LinearAttentionLayout& layout, Vector& weights, int h) {
  return weights.segment(h * layout.head_size(), layout.head_size());
}

}  // namespace

Eigen::VectorXd LinearContexts::second_moment() const {
  // S2 = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N                    theory: eq:sample-covariance-moment
  const Eigen::ArrayXd lambda = covariance.array();
  return (lambda.square() + (lambda + lambda.sum()) * lambda / length).matrix();
}

double linear_attention_loss(const LinearContexts& contexts, const Eigen::MatrixXd& m) {
  // ell = (tr Lambda - 2 tr(M^T Lambda^2) + tr(M^T S2 M Lambda)) / 2      theory: eq:linear-attention-loss
  const Eigen::VectorXd& lambda = contexts.covariance;
  const double cross = m.diagonal().dot(lambda.cwiseAbs2());
  const double square = (contexts.second_moment().transpose() * m.cwiseAbs2() * lambda).value();
  return 0.5 * (lambda.sum() - 2.0 * cross + square);
}

Eigen::MatrixXd linear_attention_force(const LinearContexts& contexts, const Eigen::MatrixXd& m) {
  // -d ell / d M = Lambda^2 - S2 M Lambda                                 theory: eq:linear-attention-force
  const Eigen::VectorXd& lambda = contexts.covariance;
  Eigen::MatrixXd force = -(contexts.second_moment().asDiagonal() * m * lambda.asDiagonal());
  force.diagonal() += lambda.cwiseAbs2();
  return force;
}

Eigen::VectorXd linear_attention_limit(const LinearContexts& contexts) {
  // M = Lambda S2^-1                                                      theory: eq:linear-attention-limit
  return contexts.covariance.cwiseQuotient(contexts.second_moment());
}

std::vector<double> visited_losses(const LinearContexts& contexts) {
  const Eigen::VectorXd limit = linear_attention_limit(contexts);
  std::vector<std::pair<double, double>> modes;  // eigenvalue, what it takes off the loss
  for (Eigen::Index d = 0; d < contexts.dimension(); ++d) {
    const double lambda = contexts.covariance(d);
    modes.emplace_back(lambda, 0.5 * limit(d) * lambda * lambda);
  }
  std::sort(modes.begin(), modes.end(), std::greater<>());
  // ell(M_m) = (tr Lambda - sum_{d <= m} lambda_d^3 / S2_d) / 2           theory: eq:visited-losses
  std::vector<double> losses{0.5 * contexts.covariance.sum()};
  for (const auto& [lambda, gain] : modes) losses.push_back(losses.back() - gain);
  return losses;
}

Eigen::MatrixXd key_query(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights, int h) {
  const Eigen::VectorXd own = head(layout, weights, h);
  const Eigen::Index d = layout.dimension;
  if (layout.split) return own.segment(1, d) * own.tail(d).transpose();
  return Eigen::Map<const RowMajor>(own.data() + 1, d, d);
}

Eigen::MatrixXd acting_matrix(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights) {
  Eigen::MatrixXd m = Eigen::MatrixXd::Zero(layout.dimension, layout.dimension);
  for (int h = 0; h < layout.heads; ++h) m += weights(h * layout.head_size()) * key_query(layout, weights, h);
  return m;
}

Eigen::VectorXd aligned_linear_start(const LinearContexts& contexts, const LinearAttentionLayout& layout,
                                     double scale) {
  const Eigen::Index d = layout.dimension;
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(layout.size());
  const Eigen::VectorXd growing = contexts.covariance.cwiseAbs2().normalized();
  for (int h = 0; h < layout.heads; ++h) {
    auto own = head(layout, weights, h);
    own(0) = scale;
    if (layout.split) {
      own(1 + h % d) = scale;
      own(1 + d + h % d) = scale;
    } else {
      for (Eigen::Index j = 0; j < d; ++j) own(1 + j * d + j) = scale * growing(j);
    }
  }
  return weights;
}

ProductLoss white_product_loss(const LinearContexts& contexts) {
  // ell = D lambda / 2 - sqrt(D) lambda^2 p + S2 lambda p^2 / 2           theory: eq:white-product-loss
  const double lambda = contexts.covariance(0);
  const auto d = static_cast<double>(contexts.dimension());
  return {0.5 * d * lambda, std::sqrt(d) * lambda * lambda, contexts.second_moment()(0) * lambda, 1.0};
}

double white_product(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights) {
  // p0 = sum_h (v_h + tr U_h / sqrt(D))^2 / 4                             theory: eq:white-start
  double p = 0.0;
  for (int h = 0; h < layout.heads; ++h) {
    const double trace = key_query(layout, weights, h).trace() / std::sqrt(static_cast<double>(layout.dimension));
    p += 0.25 * std::pow(weights(h * layout.head_size()) + trace, 2);
  }
  return p;
}

double split_limit(const LinearContexts& contexts, Eigen::Index mode, int n) {
  return std::cbrt(linear_attention_limit(contexts)(mode) / n);
}

std::optional<double> split_time(const LinearContexts& contexts, Eigen::Index mode, int n, double v0, double v) {
  const double limit = split_limit(contexts, mode, n);
  if (!(0.0 < v0 && v0 <= v && v < limit)) return std::nullopt;
  // t = (F(u) - F(u0)) / (lambda^2 v*), u = v / v*,
  // F = -1/u - log(1 - u)/3 + log(1 + u + u^2)/6 - atan((2 u + 1)/sqrt 3)/sqrt 3   theory: eq:split-implicit-time
  const auto f = [](double u) {
    const double root = std::numbers::sqrt3;
    return -1.0 / u - std::log1p(-u) / 3.0 + std::log1p(u + u * u) / 6.0 - std::atan((2.0 * u + 1.0) / root) / root;
  };
  const double lambda = contexts.covariance(mode);
  return (f(v / limit) - f(v0 / limit)) / (lambda * lambda * limit);
}

LinearAttentionFlow::LinearAttentionFlow(LinearContexts contexts, LinearAttentionLayout layout, Eigen::VectorXd start)
    : contexts_(std::move(contexts)), layout_(layout), start_(std::move(start)) {
  if (start_.size() != layout_.size() || contexts_.dimension() != layout_.dimension) {
    throw std::invalid_argument("start, layout and contexts of linear attention do not fit");
  }
}

void declare_linear_attention(Eigen::Index dimension, Trajectory& trajectory) {
  trajectory.declare("loss", "population loss (1/2) E|yhat - y_q|^2, noise-free target");
  trajectory.declare("modes", "diagonal of M = sum_h v_h U_h: yhat = beta^T M x_q", {"coordinate"},
                     {static_cast<std::size_t>(dimension)});
  trajectory.declare("leakage_key_query", "root sum of squares of the off-diagonal entries of U_h, all heads");
  trajectory.declare("leakage_cross", "root sum of squares of the keys that read responses, all heads");
  trajectory.declare("leakage_output_value", "0: there is one response");
  trajectory.declare("leakage_value_x", "root sum of squares of the values that read covariates, all heads");
}

void LinearAttentionFlow::declare(Trajectory& trajectory) const {
  declare_linear_attention(layout_.dimension, trajectory);
}

void LinearAttentionFlow::observe(const Eigen::VectorXd& y, Trajectory& trajectory) const {
  const Eigen::MatrixXd m = acting_matrix(layout_, y);
  const Eigen::VectorXd modes = m.diagonal();
  trajectory.append(0, linear_attention_loss(contexts_, m));
  trajectory.append(1, std::span(modes.data(), static_cast<std::size_t>(modes.size())));
  trajectory.append(2, off_diagonal(layout_, y));
  for (std::size_t k = 3; k < 6; ++k) trajectory.append(k, 0.0);
}

double LinearAttentionFlow::quantity(const std::string& name, const Eigen::VectorXd& y) const {
  const Eigen::MatrixXd m = acting_matrix(layout_, y);
  if (name == "loss") return linear_attention_loss(contexts_, m);
  if (const auto d = mode_index(name, layout_.dimension)) return m(*d, *d);
  throw std::invalid_argument("no quantity is called '" + name + "'");
}

void LinearAttentionFlow::velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const {
  const Eigen::MatrixXd force = linear_attention_force(contexts_, acting_matrix(layout_, y));
  const Eigen::Index d = layout_.dimension;
  rate.resize(y.size());
  for (int h = 0; h < layout_.heads; ++h) {
    const auto own = head(layout_, y, h);
    auto moved = head(layout_, rate, h);
    const Eigen::MatrixXd u = key_query(layout_, y, h);
    // v' = <U, F>, U' = v F; or k' = v F q, q' = v F^T k                  theory: eq:linear-attention-flow
    moved(0) = u.cwiseProduct(force).sum();
    if (layout_.split) {
      moved.segment(1, d) = own(0) * (force * own.tail(d));
      moved.tail(d) = own(0) * (force.transpose() * own.segment(1, d));
    } else {
      Eigen::Map<RowMajor>(rate.data() + h * layout_.head_size() + 1, d, d) = own(0) * force;
    }
  }
}

std::string LinearAttentionFlow::component(Eigen::Index i) const {
  const Eigen::Index within = i % layout_.head_size();
  const Eigen::Index head = i / layout_.head_size();
  if (within == 0) return fmt::format("v[{}]", head);
  const Eigen::Index d = layout_.dimension;
  if (!layout_.split) return fmt::format("U[{}][{}][{}]", head, (within - 1) / d, (within - 1) % d);
  return within <= d ? fmt::format("k[{}][{}]", head, within - 1) : fmt::format("q[{}][{}]", head, within - 1 - d);
}

std::optional<Eigen::Index> mode_index(const std::string& quantity, Eigen::Index dimension) {
  for (Eigen::Index d = 0; d < dimension; ++d) {
    if (quantity == fmt::format("modes[{}]", d)) return d;
  }
  return std::nullopt;
}

double off_diagonal(const LinearAttentionLayout& layout, const Eigen::VectorXd& weights) {
  double squares = 0.0;
  for (int h = 0; h < layout.heads; ++h) {
    Eigen::MatrixXd u = key_query(layout, weights, h);
    u.diagonal().setZero();
    squares += u.squaredNorm();
  }
  return std::sqrt(squares);
}

}  // namespace iclflow
