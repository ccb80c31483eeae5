#include "iclflow/regression/linear_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "iclflow/attention/partial_sums.hpp"
#include "iclflow/attention/thread_team.hpp"
#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// W_h of one head, (D+1) x D.
RowMajor keys_of(const FullLinearLayout& layout, const Eigen::VectorXd& weights, int h) {
  const Eigen::Index d = layout.dimension;
  const double* own = weights.data() + h * layout.head_size() + layout.token();
  if (!layout.split) return Eigen::Map<const RowMajor>(own, layout.token(), d);
  return Eigen::Map<const Eigen::VectorXd>(own, layout.token()) *
         Eigen::Map<const Eigen::RowVectorXd>(own + layout.token(), d);
}

/// The prediction is linear in G (x) x_q: yhat = sum_ijc B_ijc G_ij x_c, B = sum_h p_h (x) W_h. Rows i, columns (j, c).
RowMajor coefficients(const FullLinearLayout& layout, const Eigen::VectorXd& weights) {
  RowMajor b = RowMajor::Zero(layout.token(), layout.token() * layout.dimension);
  for (int h = 0; h < layout.heads; ++h) {
    const RowMajor keys = keys_of(layout, weights, h);
    b += weights.segment(h * layout.head_size(), layout.token()) *
         Eigen::Map<const Eigen::RowVectorXd>(keys.data(), keys.size());
  }
  return b;
}

/// d ell / d weights from slope_ijc = E r G_ij x_c.
Eigen::VectorXd pull_back(const FullLinearLayout& layout, const Eigen::VectorXd& weights, const RowMajor& slope) {
  Eigen::VectorXd gradient(layout.size());
  const Eigen::Index d = layout.dimension;
  for (int h = 0; h < layout.heads; ++h) {
    const RowMajor keys = keys_of(layout, weights, h);
    const Eigen::Index begin = h * layout.head_size();
    const Eigen::VectorXd value = weights.segment(begin, layout.token());
    // p' = slope W, W' = p slope; k' = W' q, q' = W'^T k                  theory: eq:full-linear-gradient
    gradient.segment(begin, layout.token()) = slope * Eigen::Map<const Eigen::VectorXd>(keys.data(), keys.size());
    const Eigen::RowVectorXd flat = value.transpose() * slope;
    const Eigen::Map<const RowMajor> key_slope(flat.data(), layout.token(), d);
    double* own = gradient.data() + begin + layout.token();
    if (!layout.split) {
      Eigen::Map<RowMajor>(own, layout.token(), d) = key_slope;
      continue;
    }
    const double* factors = weights.data() + begin + layout.token();
    const Eigen::Map<const Eigen::VectorXd> k(factors, layout.token());
    const Eigen::Map<const Eigen::VectorXd> q(factors + layout.token(), d);
    Eigen::Map<Eigen::VectorXd>(own, layout.token()) = key_slope * q;
    Eigen::Map<Eigen::VectorXd>(own + layout.token(), d) = key_slope.transpose() * k;
  }
  return gradient;
}

/// One context at a time: G, the query, the target.
class Context {
 public:
  explicit Context(const LinearContexts& contexts)
      : deviation_(contexts.covariance.cwiseSqrt()),
        length_(contexts.length),
        normals_(whole_groups<double>(static_cast<std::size_t>(deviation_.size() * (contexts.length + 2)))),
        moment_(RowMajor::Zero(deviation_.size() + 1, deviation_.size() + 1)) {}

  void draw(const StreamKey& key) {
    const Eigen::Index d = deviation_.size();
    fill_normals(key, 0, normals_.data(), normals_.size());
    const Eigen::Map<const Eigen::VectorXd> w(normals_.data(), d);
    query_ = deviation_.cwiseProduct(Eigen::Map<const Eigen::VectorXd>(normals_.data() + d, d));
    const Eigen::Map<const RowMajor> x(normals_.data() + 2 * d, length_, d);
    auto covariance = moment_.topLeftCorner(d, d);
    covariance.noalias() = x.transpose() * x;
    covariance = deviation_.asDiagonal() * covariance * deviation_.asDiagonal() / static_cast<double>(length_);
    // Responses are y_n = w.x_n: beta = Lambda^hat w.
    moment_.col(d).head(d).noalias() = covariance * w;
    moment_.row(d).head(d) = moment_.col(d).head(d).transpose();
    moment_(d, d) = w.dot(moment_.col(d).head(d));
    target_ = w.dot(query_);
  }

  [[nodiscard]] double residual(const RowMajor& b) const {
    double prediction = 0.0;
    const Eigen::Index d = deviation_.size();
    for (Eigen::Index i = 0; i <= d; ++i) {
      for (Eigen::Index j = 0; j <= d; ++j) {
        const double* own = b.data() + (i * (d + 1) + j) * d;
        double read = 0.0;
        for (Eigen::Index c = 0; c < d; ++c) read += own[c] * query_(c);
        prediction += moment_(i, j) * read;
      }
    }
    return prediction - target_;
  }
  /// Residual of the reduced model beta^T M x_q.
  [[nodiscard]] double residual(const Eigen::MatrixXd& m) const {
    const Eigen::Index d = deviation_.size();
    return (moment_.row(d).head(d) * m * query_).value() - target_;
  }
  void add_slope(double residual, RowMajor& slope) const {
    const Eigen::Index d = deviation_.size();
    for (Eigen::Index i = 0; i <= d; ++i) {
      for (Eigen::Index j = 0; j <= d; ++j) {
        double* own = slope.data() + (i * (d + 1) + j) * d;
        const double factor = residual * moment_(i, j);
        for (Eigen::Index c = 0; c < d; ++c) own[c] += factor * query_(c);
      }
    }
  }

 private:
  Eigen::VectorXd deviation_;
  int length_;
  std::vector<double> normals_;
  RowMajor moment_;
  Eigen::VectorXd query_;
  double target_ = 0.0;
};

std::size_t part_count(std::size_t contexts, const FullLinearLayout& layout) {
  const Eigen::Index numbers = layout.token() * layout.token() * layout.dimension;
  return partial_sums(contexts / 32, sizeof(double) * static_cast<std::size_t>(numbers));
}

LinearGradient batch_gradient(std::vector<Context>& workers, ThreadTeam& team, const FullLinearLayout& layout,
                              const Eigen::VectorXd& weights, const StreamKey& key, std::size_t count) {
  const RowMajor b = coefficients(layout, weights);
  const std::size_t parts = part_count(count, layout);
  std::vector<RowMajor> slopes(parts);
  std::vector<double> losses(parts, 0.0);
  team.run(parts, [&](std::size_t part, std::size_t worker) {
    Context& context = workers[worker];
    slopes[part] = RowMajor::Zero(b.rows(), b.cols());
    for (std::size_t c = part * count / parts; c < (part + 1) * count / parts; ++c) {
      context.draw({key.seed, key.stream, key.step, static_cast<std::uint32_t>(c)});
      const double residual = context.residual(b);
      losses[part] += 0.5 * residual * residual;
      context.add_slope(residual, slopes[part]);
    }
  });
  double loss = losses[0];
  for (std::size_t part = 1; part < parts; ++part) {
    loss += losses[part];
    slopes[0] += slopes[part];
  }
  const auto n = static_cast<double>(count);
  return {loss / n, pull_back(layout, weights, slopes[0] / n)};
}

class LinearDescent final : public DescentSystem {
 public:
  LinearDescent(LinearContexts contexts, const FullLinearLayout& layout, Eigen::VectorXd weights,
                const LinearSimulationOptions& options)
      : contexts_(std::move(contexts)),
        layout_(layout),
        start_(std::move(weights)),
        options_(options),
        team_(options.threads),
        workers_(team_.size(), Context(contexts_)) {
    if (start_.size() != layout_.size()) throw std::invalid_argument("initial weights do not fit their layout");
  }

  [[nodiscard]] Eigen::VectorXd initial() const override { return start_; }
  void declare(Trajectory& run) const override {
    declare_linear_attention(layout_.dimension, run);
    run.declare("loss_standard_error", "standard error of the loss over the evaluation contexts");
  }
  void observe(const Eigen::VectorXd& weights, Trajectory& run) const override;
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& weights) const override;
  void gradient(std::uint64_t step, const Eigen::VectorXd& weights, Eigen::VectorXd& gradient) const override {
    const StreamKey key{options_.seed, Stream::training, static_cast<std::uint32_t>(step), 0};
    gradient =
        batch_gradient(workers_, team_, layout_, weights, key, static_cast<std::size_t>(options_.batch)).gradient;
  }
  [[nodiscard]] std::string component(Eigen::Index i) const override;

 private:
  struct Loss {
    double value;
    double standard_error;
  };
  [[nodiscard]] Loss loss(const Eigen::VectorXd& weights) const;
  [[nodiscard]] Eigen::MatrixXd matrix(const Eigen::VectorXd& weights) const {
    return acting_matrix(layout_.reduced(), project_linear(layout_, weights));
  }

  LinearContexts contexts_;
  FullLinearLayout layout_;
  Eigen::VectorXd start_;
  LinearSimulationOptions options_;
  mutable ThreadTeam team_;
  mutable std::vector<Context> workers_;
};

LinearDescent::Loss LinearDescent::loss(const Eigen::VectorXd& weights) const {
  const RowMajor b = coefficients(layout_, weights);
  const Eigen::MatrixXd m = matrix(weights);
  const auto count = static_cast<std::size_t>(options_.evaluation_contexts);
  const std::size_t parts = part_count(count, layout_);
  std::vector<double> sums(parts, 0.0);
  std::vector<double> squares(parts, 0.0);
  team_.run(parts, [&](std::size_t part, std::size_t worker) {
    for (std::size_t c = part * count / parts; c < (part + 1) * count / parts; ++c) {
      workers_[worker].draw({0, Stream::evaluation, 0, static_cast<std::uint32_t>(c)});  // the same for every seed
      const double full = workers_[worker].residual(b);
      const double reduced = workers_[worker].residual(m);
      const double difference = 0.5 * (full - reduced) * (full + reduced);
      sums[part] += difference;
      squares[part] += difference * difference;
    }
  });
  double sum = 0.0;
  double square = 0.0;
  for (std::size_t part = 0; part < parts; ++part) {
    sum += sums[part];
    square += squares[part];
  }
  const auto n = static_cast<double>(count);
  const double variance = std::max(0.0, square / n - sum / n * (sum / n));
  return {linear_attention_loss(contexts_, m) + sum / n, std::sqrt(variance / std::max(1.0, n - 1.0))};
}

void LinearDescent::observe(const Eigen::VectorXd& weights, Trajectory& run) const {
  const Loss now = loss(weights);
  const Eigen::VectorXd modes = matrix(weights).diagonal();
  double cross = 0.0;
  double value_x = 0.0;
  for (int h = 0; h < layout_.heads; ++h) {
    value_x += weights.segment(h * layout_.head_size(), layout_.dimension).squaredNorm();
    cross += keys_of(layout_, weights, h).row(layout_.dimension).squaredNorm();
  }
  run.append(0, now.value);
  run.append(1, std::span(modes.data(), static_cast<std::size_t>(modes.size())));
  run.append(2, off_diagonal(layout_.reduced(), project_linear(layout_, weights)));
  run.append(3, std::sqrt(cross));
  run.append(4, 0.0);
  run.append(5, std::sqrt(value_x));
  run.append(6, now.standard_error);
}

double LinearDescent::quantity(const std::string& name, const Eigen::VectorXd& weights) const {
  if (name == "loss") return loss(weights).value;
  if (const auto d = mode_index(name, layout_.dimension)) return matrix(weights)(*d, *d);
  throw std::invalid_argument("no quantity is called '" + name + "'");
}

std::string LinearDescent::component(Eigen::Index i) const {
  const Eigen::Index within = i % layout_.head_size();
  std::string name = "head " + std::to_string(i / layout_.head_size());
  name += within < layout_.token() ? ", value " : ", key-query ";
  return name + std::to_string(within < layout_.token() ? within : within - layout_.token());
}

}  // namespace

Eigen::VectorXd embed_linear(const FullLinearLayout& layout, const Eigen::VectorXd& reduced) {
  const LinearAttentionLayout small = layout.reduced();
  const Eigen::Index d = layout.dimension;
  Eigen::VectorXd full = Eigen::VectorXd::Zero(layout.size());
  for (int h = 0; h < layout.heads; ++h) {
    const Eigen::VectorXd own = reduced.segment(h * small.head_size(), small.head_size());
    auto target = full.segment(h * layout.head_size(), layout.head_size());
    target(d) = own(0);
    target.segment(layout.token(), layout.split ? d : d * d) = own.segment(1, layout.split ? d : d * d);
    if (layout.split) target.tail(d) = own.tail(d);
  }
  return full;
}

Eigen::VectorXd project_linear(const FullLinearLayout& layout, const Eigen::VectorXd& full) {
  const LinearAttentionLayout small = layout.reduced();
  const Eigen::Index d = layout.dimension;
  Eigen::VectorXd reduced(small.size());
  for (int h = 0; h < layout.heads; ++h) {
    const Eigen::VectorXd own = full.segment(h * layout.head_size(), layout.head_size());
    auto target = reduced.segment(h * small.head_size(), small.head_size());
    target(0) = own(d);
    target.segment(1, layout.split ? d : d * d) = own.segment(layout.token(), layout.split ? d : d * d);
    if (layout.split) target.tail(d) = own.tail(d);
  }
  return reduced;
}

std::unique_ptr<DescentSystem> make_linear_descent(const LinearContexts& contexts, const FullLinearLayout& layout,
                                                   const Eigen::VectorXd& weights,
                                                   const LinearSimulationOptions& options) {
  return std::make_unique<LinearDescent>(contexts, layout, weights, options);
}

LinearGradient linear_gradient(const LinearContexts& contexts, const FullLinearLayout& layout,
                               const Eigen::VectorXd& weights, const StreamKey& key, std::size_t count, int threads) {
  ThreadTeam team(threads);
  std::vector<Context> workers(team.size(), Context(contexts));
  return batch_gradient(workers, team, layout, weights, key, count);
}

}  // namespace iclflow
