#include "iclflow/mesa/complex_attention.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "iclflow/attention/partial_sums.hpp"
#include "iclflow/attention/thread_team.hpp"
#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

/// Sequences side by side: all arithmetic is on one number of each.
constexpr int lanes = 8;
using Lanes = Eigen::Array<double, lanes, 1>;

struct Complex {
  Lanes re = Lanes::Zero();
  Lanes im = Lanes::Zero();
};
using Vector = std::vector<Complex>;

/// sum += a b, a conj(b), and the same with a number that all lanes share.
inline void add_product(Complex& sum, const Complex& a, const Complex& b) {
  sum.re += a.re * b.re - a.im * b.im;
  sum.im += a.re * b.im + a.im * b.re;
}
inline void add_product_conjugate(Complex& sum, const Complex& a, const Complex& b) {
  sum.re += a.re * b.re + a.im * b.im;
  sum.im += a.im * b.re - a.re * b.im;
}
inline void add_scaled(Complex& sum, double re, double im, const Complex& x) {
  sum.re += re * x.re - im * x.im;
  sum.im += re * x.im + im * x.re;
}

/// One group of sequences: its states, and the pass over t.
class Group {
 public:
  explicit Group(const UnitarySequences& sequences)
      : sequences_(sequences),
        d_(static_cast<std::size_t>(sequences.dimension)),
        states_(d_ * static_cast<std::size_t>(sequences.length)),
        moment_(4 * d_ * d_),
        token_(2 * d_),
        query_(2 * d_),
        read_(2 * d_),
        error_(d_),
        back_(2 * d_),
        back_read_(2 * d_),
        value_slope_(2 * d_ * d_),
        key_query_slope_(4 * d_ * d_) {}

  void draw(const StreamKey& key);
  /// Loss of each sequence; its gradient is kept.
  Lanes pass(const Eigen::VectorXd& weights, bool with_gradient);
  /// Adds the gradient of the last pass, summed over the first `count` sequences.
  void add_gradient(int count, Eigen::VectorXd& gradient) const;

  /// loss = constant - linear s + quadratic s^2 / 2 of the reduced model, per sequence.
  struct Reduced {
    Lanes constant = Lanes::Zero();
    Lanes linear = Lanes::Zero();
    Lanes quadratic = Lanes::Zero();
  };
  [[nodiscard]] Reduced reduced();

 private:
  [[nodiscard]] const Complex& state(int t, std::size_t j) const {  // t from 1
    return states_[static_cast<std::size_t>(t - 1) * d_ + j];
  }
  [[nodiscard]] std::vector<double> first_states(const double* normals) const;
  void unfold(const std::vector<double>& first, const double* angles);
  void read_token(int t);
  void apply_moment(const Vector& in, double scale, Vector& out) const;
  void backward(const Eigen::VectorXd& weights, double scale);

  UnitarySequences sequences_;
  std::size_t d_;
  Vector states_;
  Vector moment_;  ///< sum of e_i e_i^*, 2d x 2d
  Vector token_, query_, read_, error_, back_, back_read_;
  Vector value_slope_, key_query_slope_;
};

/// x_1 of all lanes (coordinate-major) from as many normals.
std::vector<double> Group::first_states(const double* normals) const {
  const double c = sequences_.initial_scale;
  std::vector<double> x(normals, normals + d_ * lanes);
  if (sequences_.initial == FirstState::normal) {
    for (double& entry : x) entry *= c;
  } else if (sequences_.initial == FirstState::uniform) {
    for (double& entry : x) entry = c * std::erf(entry / std::numbers::sqrt2);
  } else if (sequences_.initial == FirstState::signs) {
    for (double& entry : x) entry = std::copysign(c, entry);
  } else {
    // The largest of independent normals stands anywhere with equal probability, in any direction.
    const std::size_t width = sequences_.kind == TransitionKind::unitary ? 1 : 2;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto norm = [&](std::size_t j) {
        const double other = width == 2 ? normals[(j + 1) * lanes + lane] : 0.0;
        return std::hypot(normals[j * lanes + lane], other);
      };
      std::size_t largest = 0;
      for (std::size_t j = width; j < d_; j += width) largest = norm(j) > norm(largest) ? j : largest;
      const double scale = c / norm(largest);
      for (std::size_t j = 0; j < d_; ++j) {
        x[j * lanes + lane] = j >= largest && j < largest + width ? scale * normals[j * lanes + lane] : 0.0;
      }
    }
  }
  return x;
}

/// x_{t+1} = W x_t; the angle of (n1, n2) is uniform.
void Group::unfold(const std::vector<double>& first, const double* angles) {
  const auto phases = static_cast<std::size_t>(sequences_.phases());
  const std::size_t width = d_ / phases;
  using Map = Eigen::Map<const Lanes>;
  for (std::size_t p = 0; p < phases; ++p) {
    const Lanes n1 = Map(angles + 2 * p * lanes);
    const Lanes n2 = Map(angles + (2 * p + 1) * lanes);
    const Lanes norm = (n1.square() + n2.square()).sqrt();
    const Complex turn{n1 / norm, n2 / norm};
    Complex z{Map(first.data() + width * p * lanes), Lanes::Zero()};
    if (width == 2) z.im = Map(first.data() + (width * p + 1) * lanes);
    for (int t = 0; t < sequences_.length; ++t) {
      Complex* x = &states_[static_cast<std::size_t>(t) * d_ + width * p];
      if (width == 1) {
        *x = z;
      } else {
        x[0] = {z.re, Lanes::Zero()};
        x[1] = {z.im, Lanes::Zero()};
      }
      Complex next;
      add_product(next, turn, z);
      z = next;
    }
  }
}

void Group::draw(const StreamKey& key) {
  const std::size_t first = d_ * lanes;
  const std::size_t angles = 2 * static_cast<std::size_t>(sequences_.phases()) * lanes;
  std::vector<double> normals(whole_groups<double>(first + angles));
  fill_normals(key, 0, normals.data(), normals.size());
  unfold(first_states(normals.data()), normals.data() + first);
}

/// e_t = (x_t, x_{t-1}) joins the sum of e_i e_i^*.
void Group::read_token(int t) {
  for (std::size_t j = 0; j < d_; ++j) {
    token_[j] = state(t, j);
    token_[d_ + j] = state(t - 1, j);
  }
  for (std::size_t j = 0; j < 2 * d_; ++j) {
    for (std::size_t k = 0; k < 2 * d_; ++k) add_product_conjugate(moment_[2 * d_ * j + k], token_[j], token_[k]);
  }
}

void Group::apply_moment(const Vector& in, double scale, Vector& out) const {
  for (std::size_t j = 0; j < 2 * d_; ++j) {
    Complex sum;
    for (std::size_t k = 0; k < 2 * d_; ++k) add_product(sum, moment_[2 * d_ * j + k], in[k]);
    out[j] = {scale * sum.re, scale * sum.im};
  }
}

/// P' += r u^*, Q' += (S P^* r) e_t^* with u = S Q e_t                     theory: eq:autoregressive-gradient
void Group::backward(const Eigen::VectorXd& weights, double scale) {
  const ComplexAttentionLayout layout{static_cast<Eigen::Index>(d_)};
  for (std::size_t k = 0; k < 2 * d_; ++k) {
    back_[k] = Complex{};
    for (std::size_t j = 0; j < d_; ++j) {
      const auto row = static_cast<Eigen::Index>(j);
      const auto column = static_cast<Eigen::Index>(k);
      add_scaled(back_[k], weights(layout.value(row, column)), -weights(layout.value(row, column, true)), error_[j]);
      add_product_conjugate(value_slope_[2 * d_ * j + k], error_[j], read_[k]);
    }
  }
  apply_moment(back_, scale, back_read_);
  for (std::size_t j = 0; j < 2 * d_; ++j) {
    for (std::size_t k = 0; k < 2 * d_; ++k) {
      add_product_conjugate(key_query_slope_[2 * d_ * j + k], back_read_[j], token_[k]);
    }
  }
}

Lanes Group::pass(const Eigen::VectorXd& weights, bool with_gradient) {
  const ComplexAttentionLayout layout{static_cast<Eigen::Index>(d_)};
  for (Vector* sum : {&moment_, &value_slope_, &key_query_slope_}) std::fill(sum->begin(), sum->end(), Complex{});
  Lanes loss = Lanes::Zero();
  for (int t = 2; t < sequences_.length; ++t) {
    read_token(t);
    for (std::size_t j = 0; j < 2 * d_; ++j) {
      query_[j] = Complex{};
      for (std::size_t k = 0; k < 2 * d_; ++k) {
        const auto row = static_cast<Eigen::Index>(j);
        const auto column = static_cast<Eigen::Index>(k);
        add_scaled(query_[j], weights(layout.key_query(row, column)), weights(layout.key_query(row, column, true)),
                   token_[k]);
      }
    }
    // yhat_t = P (1/(t-1)) sum_{i=2}^t e_i e_i^* Q e_t                    theory: eq:autoregressive-attention
    const double scale = 1.0 / (t - 1);
    apply_moment(query_, scale, read_);
    for (std::size_t j = 0; j < d_; ++j) {
      error_[j] = {-state(t + 1, j).re, -state(t + 1, j).im};
      for (std::size_t k = 0; k < 2 * d_; ++k) {
        const auto row = static_cast<Eigen::Index>(j);
        const auto column = static_cast<Eigen::Index>(k);
        add_scaled(error_[j], weights(layout.value(row, column)), weights(layout.value(row, column, true)), read_[k]);
      }
      loss += 0.5 * (error_[j].re.square() + error_[j].im.square());
    }
    if (with_gradient) backward(weights, scale);
  }
  return loss;
}

void Group::add_gradient(int count, Eigen::VectorXd& gradient) const {
  const auto d = static_cast<Eigen::Index>(d_);
  const auto add = [&](const Vector& slope, Eigen::Index begin) {
    const auto size = static_cast<Eigen::Index>(slope.size());
    for (Eigen::Index k = 0; k < size; ++k) {
      gradient(begin + k) += slope[static_cast<std::size_t>(k)].re.head(count).sum();
      gradient(begin + size + k) += slope[static_cast<std::size_t>(k)].im.head(count).sum();
    }
  };
  add(value_slope_, 0);
  add(key_query_slope_, 4 * d * d);
}

Group::Reduced Group::reduced() {
  Reduced sums;
  std::fill(moment_.begin(), moment_.end(), Complex{});
  for (int t = 2; t < sequences_.length; ++t) {
    read_token(t);
    for (std::size_t j = 0; j < d_; ++j) {
      // yhat_t / s = (1/(t-1)) sum_{i<t} x_{i+1} x_i^* x_t
      Complex y;
      for (std::size_t k = 0; k < d_; ++k) add_product(y, moment_[2 * d_ * j + d_ + k], token_[k]);
      const double scale = 1.0 / (t - 1);
      const Complex& target = state(t + 1, j);
      sums.constant += 0.5 * (target.re.square() + target.im.square());
      sums.linear += scale * (target.re * y.re + target.im * y.im);
      sums.quadratic += scale * scale * (y.re.square() + y.im.square());
    }
  }
  return sums;
}

/// Groups of one key (seed, stream, step) in parts for a team; a part takes a run of groups.
struct Parts {
  std::size_t sequences;
  std::size_t groups;
  std::size_t parts;

  Parts(std::size_t count, std::size_t bytes)
      : sequences(count), groups((count + lanes - 1) / lanes), parts(partial_sums((groups + 1) / 2, bytes)) {}
  [[nodiscard]] std::size_t begin(std::size_t part) const { return part * groups / parts; }
  [[nodiscard]] int used(std::size_t group) const {
    return static_cast<int>(std::min<std::size_t>(lanes, sequences - group * lanes));
  }
};

ComplexAttentionGradient batch_gradient(std::vector<Group>& workers, ThreadTeam& team, const Eigen::VectorXd& weights,
                                        StreamKey key, std::size_t count) {
  const Parts parts(count, sizeof(double) * static_cast<std::size_t>(weights.size()));
  std::vector<Eigen::VectorXd> gradients(parts.parts);
  std::vector<double> losses(parts.parts, 0.0);
  team.run(parts.parts, [&](std::size_t part, std::size_t worker) {
    Group& group = workers[worker];
    gradients[part] = Eigen::VectorXd::Zero(weights.size());
    for (std::size_t g = parts.begin(part); g < parts.begin(part + 1); ++g) {
      group.draw({key.seed, key.stream, key.step, static_cast<std::uint32_t>(g)});
      losses[part] += group.pass(weights, true).head(parts.used(g)).sum();
      group.add_gradient(parts.used(g), gradients[part]);
    }
  });
  ComplexAttentionGradient total{0.0, Eigen::VectorXd::Zero(weights.size())};
  for (std::size_t part = 0; part < parts.parts; ++part) {
    total.loss += losses[part];
    total.gradient += gradients[part];
  }
  total.loss /= static_cast<double>(count);
  total.gradient /= static_cast<double>(count);
  return total;
}

class ComplexAttention final : public DescentSystem {
 public:
  explicit ComplexAttention(const ComplexAttentionOptions& options)
      : options_(options),
        layout_{options.sequences.dimension},
        exact_(product_loss(options.sequences)),
        reduced_flow_(exact_, options.a, options.b),
        team_(options.threads),
        workers_(team_.size(), Group(options.sequences)) {
    const UnitarySequences& s = options.sequences;
    if (s.dimension < 1 || s.length < 3) throw std::invalid_argument("sequences need a dimension and three states");
    if (s.kind == TransitionKind::rotation && s.dimension % 2 != 0) {
      throw std::invalid_argument("rotations need an even dimension");
    }
    measure_reduced();
  }

  [[nodiscard]] Eigen::VectorXd initial() const override;
  void declare(Trajectory& run) const override {
    reduced_flow_.declare(run);
    run.declare("loss_standard_error", "standard error of the loss over the evaluation sequences");
  }
  void observe(const Eigen::VectorXd& weights, Trajectory& run) const override;
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& weights) const override;
  void gradient(std::uint64_t step, const Eigen::VectorXd& weights, Eigen::VectorXd& gradient) const override;
  [[nodiscard]] std::string component(Eigen::Index i) const override;

 private:
  struct Loss {
    double value;
    double standard_error;
  };
  void measure_reduced();
  [[nodiscard]] Loss loss(const Eigen::VectorXd& weights) const;
  [[nodiscard]] bool trained(Eigen::Index i) const;
  [[nodiscard]] StreamKey evaluation_key(std::size_t group) const {
    return {0, Stream::evaluation, 0, static_cast<std::uint32_t>(group)};  // the same for every seed
  }
  [[nodiscard]] Parts evaluation_parts() const {
    return {static_cast<std::size_t>(options_.evaluation_contexts), sizeof(double)};
  }

  ComplexAttentionOptions options_;
  ComplexAttentionLayout layout_;
  ProductLoss exact_;
  ProductFlow reduced_flow_;
  mutable ThreadTeam team_;
  mutable std::vector<Group> workers_;
  std::vector<Group::Reduced> reduced_;  ///< of the evaluation sequences, one per group
};

/// What the reduced model's loss on each evaluation sequence is a polynomial of.
void ComplexAttention::measure_reduced() {
  const Parts parts = evaluation_parts();
  reduced_.resize(parts.groups);
  team_.run(parts.parts, [&](std::size_t part, std::size_t worker) {
    for (std::size_t g = parts.begin(part); g < parts.begin(part + 1); ++g) {
      workers_[worker].draw(evaluation_key(g));
      reduced_[g] = workers_[worker].reduced();
    }
  });
}

bool ComplexAttention::trained(Eigen::Index i) const {
  const Eigen::Index d = layout_.d;
  const bool imaginary = (i >= 2 * d * d && i < 4 * d * d) || i >= 8 * d * d;
  if (imaginary && options_.sequences.kind == TransitionKind::rotation) return false;
  if (!options_.active_blocks) return true;
  const bool value = i < 4 * d * d;
  const Eigen::Index within = value ? i % (2 * d * d) : (i - 4 * d * d) % (4 * d * d);
  const Eigen::Index row = within / (2 * d);
  const Eigen::Index column = within % (2 * d);
  return value ? column < d : row >= d && column < d;
}

Eigen::VectorXd ComplexAttention::initial() const {
  Eigen::VectorXd weights = Eigen::VectorXd::Zero(layout_.size());
  if (options_.perturbation > 0.0) {
    NormalStream normal({options_.seed, Stream::initial, 0, 0});
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      const double deviation = options_.perturbation * normal();
      if (trained(i)) weights(i) = deviation;
    }
  }
  for (Eigen::Index j = 0; j < layout_.d; ++j) {
    weights(layout_.value(j, j)) += options_.b;
    weights(layout_.key_query(layout_.d + j, j)) += options_.a;
  }
  return weights;
}

ComplexAttention::Loss ComplexAttention::loss(const Eigen::VectorXd& weights) const {
  const TwoParameters at = two_parameters(layout_, weights);
  const double s = at.a * at.b;
  const Parts parts = evaluation_parts();
  std::vector<double> sums(parts.parts, 0.0);
  std::vector<double> squares(parts.parts, 0.0);
  team_.run(parts.parts, [&](std::size_t part, std::size_t worker) {
    for (std::size_t g = parts.begin(part); g < parts.begin(part + 1); ++g) {
      workers_[worker].draw(evaluation_key(g));
      const Group::Reduced& own = reduced_[g];
      const Lanes difference =
          workers_[worker].pass(weights, false) - (own.constant - s * own.linear + 0.5 * s * s * own.quadratic);
      sums[part] += difference.head(parts.used(g)).sum();
      squares[part] += difference.head(parts.used(g)).square().sum();
    }
  });
  double sum = 0.0;
  double square = 0.0;
  for (std::size_t part = 0; part < parts.parts; ++part) {
    sum += sums[part];
    square += squares[part];
  }
  const auto count = static_cast<double>(options_.evaluation_contexts);
  const double mean = sum / count;
  const double variance = std::max(0.0, square / count - mean * mean);
  return {exact_.value(s) + mean, std::sqrt(variance / std::max(1.0, count - 1.0))};
}

void ComplexAttention::observe(const Eigen::VectorXd& weights, Trajectory& run) const {
  const TwoParameters at = two_parameters(layout_, weights);
  const Loss now = loss(weights);
  std::size_t k = 0;
  for (const double value : {now.value, at.a, at.b, at.a * at.b, at.leakage, now.standard_error})
    run.append(k++, value);
}

double ComplexAttention::quantity(const std::string& name, const Eigen::VectorXd& weights) const {
  if (name == "loss") return loss(weights).value;
  const TwoParameters at = two_parameters(layout_, weights);
  if (name == "a") return at.a;
  if (name == "b") return at.b;
  if (name == "product") return at.a * at.b;
  if (name == "leakage") return at.leakage;
  throw std::invalid_argument("no quantity is called '" + name + "'");
}

void ComplexAttention::gradient(std::uint64_t step, const Eigen::VectorXd& weights, Eigen::VectorXd& gradient) const {
  const StreamKey key{options_.seed, Stream::training, static_cast<std::uint32_t>(step), 0};
  gradient = batch_gradient(workers_, team_, weights, key, static_cast<std::size_t>(options_.batch)).gradient;
  for (Eigen::Index i = 0; i < gradient.size(); ++i) gradient(i) = trained(i) ? gradient(i) : 0.0;
}

std::string ComplexAttention::component(Eigen::Index i) const {
  const Eigen::Index d = layout_.d;
  const bool value = i < 4 * d * d;
  const Eigen::Index size = value ? 2 * d * d : 4 * d * d;
  const Eigen::Index within = value ? i : i - 4 * d * d;
  std::string name = within < size ? "Re " : "Im ";
  name += value ? "P[" : "Q[";
  name += std::to_string(within % size / (2 * d));
  name += "][";
  name += std::to_string(within % (2 * d));
  return name + "]";
}

}  // namespace

TwoParameters two_parameters(const ComplexAttentionLayout& layout, const Eigen::VectorXd& weights) {
  TwoParameters at;
  const auto d = static_cast<double>(layout.d);
  for (Eigen::Index j = 0; j < layout.d; ++j) {
    at.a += weights(layout.key_query(layout.d + j, j)) / d;
    at.b += weights(layout.value(j, j)) / d;
  }
  Eigen::VectorXd rest = weights;
  for (Eigen::Index j = 0; j < layout.d; ++j) {
    rest(layout.key_query(layout.d + j, j)) -= at.a;
    rest(layout.value(j, j)) -= at.b;
  }
  at.leakage = rest.norm();
  return at;
}

std::unique_ptr<DescentSystem> make_complex_attention(const ComplexAttentionOptions& options) {
  return std::make_unique<ComplexAttention>(options);
}

ComplexAttentionGradient complex_attention_gradient(const UnitarySequences& sequences, const Eigen::VectorXd& weights,
                                                    std::uint64_t seed, Stream stream, std::uint32_t step,
                                                    std::size_t count, int threads) {
  ThreadTeam team(threads);
  std::vector<Group> workers(team.size(), Group(sequences));
  return batch_gradient(workers, team, weights, {seed, stream, step, 0}, count);
}

}  // namespace iclflow
