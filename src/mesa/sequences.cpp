#include "iclflow/mesa/sequences.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

constexpr double observation_scale = 0.5;  ///< deviation of the entries of C*
constexpr double teacher_scale = 1.1;      ///< deviation of the entries of A and B
constexpr double smallest_modulus = 0.3;
constexpr double largest_modulus = 0.9;
constexpr double contracting_bound = 2.0;

/// U(-1, 1) from a standard normal by its distribution function.
double uniform(double normal) { return std::erf(normal / std::numbers::sqrt2); }

std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }

/// Q of the QR decomposition of a Gaussian matrix, with the signs of R's diagonal: Haar. Each reflection leaves the
/// columns to come Gaussian, so that only the triangle of numbers that the reflections see is drawn (Stewart 1980).
/// normals: n (n + 1) / 2; q: n x n, row-major; row: n numbers to work with.
void haar(std::size_t n, double* normals, double* q, double* row) {
  std::fill(q, q + n * n, 0.0);
  double* v = normals + triangle(n);
  for (std::size_t k = n; k-- > 0;) {
    const std::size_t size = n - k;
    v -= size;
    const double sign = v[0] < 0.0 ? -1.0 : 1.0;
    if (size == 1) {
      q[k * n + k] = sign;
      continue;
    }
    double square = 0.0;
    for (std::size_t i = 0; i < size; ++i) square += v[i] * v[i];
    const double norm = std::sqrt(square);
    v[0] += sign * norm;
    const double factor = 1.0 / (norm * std::abs(v[0]));  // 2 / |v|^2
    // column k of Q is -sign e_k before the reflection
    q[k * n + k] = -sign;
    std::fill(row + k, row + n, 0.0);
    for (std::size_t i = 0; i < size; ++i) {
      const double* from = q + (k + i) * n;
      for (std::size_t j = k; j < n; ++j) row[j] += v[i] * from[j];
    }
    for (std::size_t i = 0; i < size; ++i) {
      double* to = q + (k + i) * n;
      const double scaled = factor * v[i];
      for (std::size_t j = k; j < n; ++j) to[j] -= scaled * row[j];
    }
  }
}

/// out = sum_j (column j) x_j of a matrix with columns of `rows` numbers.
void apply(const double* matrix, std::size_t rows, std::size_t columns, const double* x, double* out) {
  std::fill(out, out + rows, 0.0);
  for (std::size_t j = 0; j < columns; ++j) {
    const double* column = matrix + j * rows;
    for (std::size_t i = 0; i < rows; ++i) out[i] += column[i] * x[j];
  }
}

/// GELU in its exact form, z Phi(z).
double gelu(double z) { return 0.5 * z * (1.0 + uniform(z)); }

/// W = V D V^-1 with every modulus of D redrawn, the two of a conjugate pair together.
void redraw_moduli(std::size_t n, const double* normals, double* matrix) {
  const auto size = static_cast<Eigen::Index>(n);
  Eigen::Map<Eigen::MatrixXd> w(matrix, size, size);
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(w);
  const Eigen::MatrixXd& vectors = solver.pseudoEigenvectors();
  Eigen::MatrixXd values = solver.pseudoEigenvalueMatrix();
  for (Eigen::Index k = 0; k < size; ++k) {
    const Eigen::Index width = k + 1 < size && values(k, k + 1) != 0.0 ? 2 : 1;
    const double modulus = smallest_modulus + (largest_modulus - smallest_modulus) * 0.5 * (1.0 + uniform(normals[k]));
    const double before = width == 2 ? std::hypot(values(k, k), values(k, k + 1)) : std::abs(values(k, k));
    values.block(k, k, width, width) *= modulus / before;
    k += width - 1;
  }
  const Eigen::MatrixXd scaled = vectors * values;
  w = vectors.transpose().partialPivLu().solve(scaled.transpose()).transpose();
}

/// Numbers of one key, handed out in order.
class Numbers {
 public:
  double* draw(const StreamKey& key, std::size_t count) {
    buffer_.resize(std::max(buffer_.size(), whole_groups<double>(count)));
    fill_normals(key, 0, buffer_.data(), whole_groups<double>(count));
    next_ = buffer_.data();
    return next_;
  }
  double* take(std::size_t count) {
    double* at = next_;
    next_ += count;
    return at;
  }

 private:
  std::vector<double> buffer_;
  double* next_ = nullptr;
};

class SequenceSource {
 public:
  explicit SequenceSource(const SequenceProblem& problem)
      : problem_(problem),
        observed_(static_cast<std::size_t>(problem.state_dimension)),
        hidden_(static_cast<std::size_t>(partial() ? problem.hidden_dimension : problem.state_dimension)),
        steps_(static_cast<std::size_t>(problem.length)),
        w_(hidden_ * hidden_),
        state_(hidden_),
        input_(hidden_),
        row_(hidden_) {
    if (is(SequenceKind::fixed)) {
      haar(hidden_, numbers_.draw({problem.teacher_seed, Stream::teacher, 1, 0}, triangle(hidden_)), w_.data(),
           row_.data());
    }
    if (is(SequenceKind::nonlinear)) make_teacher();
  }

  /// States of the sequence of this key to out, (length + 1) x n.
  void draw(const StreamKey& key, double* out) {
    const std::size_t noise = problem_.noise_deviation > 0.0 ? steps_ * hidden_ : 0;
    const std::size_t observation_noise = problem_.observation_noise_deviation > 0.0 ? (steps_ + 1) * observed_ : 0;
    const std::size_t observation = partial() ? observed_ * hidden_ : 0;
    numbers_.draw(key, transition_numbers() + hidden_ + observation + noise + observation_noise);
    draw_transition();
    double* initial = numbers_.take(hidden_);
    for (std::size_t i = 0; i < hidden_; ++i)
      state_[i] = problem_.initial == InitialLaw::uniform ? uniform(initial[i]) : initial[i];
    double* observe = numbers_.take(observation);
    for (std::size_t k = 0; k < observation; ++k) observe[k] *= observation_scale;
    const double* process = noise > 0 ? numbers_.take(noise) : nullptr;
    const double* measured = observation_noise > 0 ? numbers_.take(observation_noise) : nullptr;
    for (std::size_t t = 0; t <= steps_; ++t, out += observed_) {
      if (t > 0) advance(process != nullptr ? process + (t - 1) * hidden_ : nullptr);
      if (partial()) {
        apply(observe, observed_, hidden_, state_.data(), out);
      } else {
        std::copy(state_.begin(), state_.end(), out);
      }
      if (measured == nullptr) continue;
      for (std::size_t i = 0; i < observed_; ++i)
        out[i] += problem_.observation_noise_deviation * measured[t * observed_ + i];
    }
  }

 private:
  [[nodiscard]] bool is(SequenceKind kind) const { return problem_.kind == kind; }
  [[nodiscard]] bool partial() const { return is(SequenceKind::partial); }

  [[nodiscard]] std::size_t transition_numbers() const {
    if (is(SequenceKind::fixed)) return 0;
    return is(SequenceKind::contracting) ? hidden_ * hidden_ + hidden_ : triangle(hidden_);
  }

  void draw_transition() {
    double* numbers = numbers_.take(transition_numbers());
    if (is(SequenceKind::fixed)) return;
    if (is(SequenceKind::contracting)) {
      std::copy(numbers, numbers + hidden_ * hidden_, w_.begin());
      redraw_moduli(hidden_, numbers + hidden_ * hidden_, w_.data());
    } else {
      haar(hidden_, numbers, w_.data(), row_.data());
    }
  }

  void make_teacher() {
    const auto width = static_cast<std::size_t>(problem_.teacher_width);
    const double* numbers = numbers_.draw({problem_.teacher_seed, Stream::teacher, 0, 0}, 2 * width * hidden_);
    teacher_.resize(2 * width * hidden_);
    std::transform(numbers, numbers + teacher_.size(), teacher_.begin(), [](double z) { return teacher_scale * z; });
    activations_.resize(width);
  }

  /// h <- W* f*(h) + noise (theory: eq:sequence-law); rows of the Haar matrix serve as columns, its transpose has the
  /// same law.
  void advance(const double* noise) {
    if (is(SequenceKind::nonlinear)) {
      teach();
    } else {
      input_ = state_;
    }
    apply(w_.data(), hidden_, hidden_, input_.data(), state_.data());
    if (noise != nullptr) {
      for (std::size_t i = 0; i < hidden_; ++i) state_[i] += problem_.noise_deviation * noise[i];
    }
    if (is(SequenceKind::contracting)) {
      for (double& entry : state_) entry = std::clamp(entry, -contracting_bound, contracting_bound);
    }
  }

  /// f*(h) = B GELU(A h) / |B GELU(A h)| (theory: eq:sequence-law)
  void teach() {
    const std::size_t width = activations_.size();
    apply(teacher_.data(), width, hidden_, state_.data(), activations_.data());
    for (double& z : activations_) z = gelu(z);
    apply(teacher_.data() + width * hidden_, hidden_, width, activations_.data(), input_.data());
    double square = 0.0;
    for (const double entry : input_) square += entry * entry;
    for (double& entry : input_) entry /= std::sqrt(square);
  }

  const SequenceProblem problem_;
  std::size_t observed_, hidden_, steps_;
  Numbers numbers_;
  std::vector<double> w_;  ///< columns of `hidden_` numbers
  std::vector<double> state_, input_, row_;
  std::vector<double> teacher_, activations_;  ///< columns of A, then of B
};

void check(const SequenceProblem& problem, std::size_t first, std::size_t count) {
  const bool sizes =
      problem.state_dimension > 0 && problem.hidden_dimension > 0 && problem.length > 0 && problem.teacher_width > 0;
  const bool noise = problem.noise_deviation >= 0.0 && problem.observation_noise_deviation >= 0.0;
  if (!sizes || !noise) throw std::invalid_argument("sequences need positive sizes and noise that is not negative");
  constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
  if (first > most || count > most - first) throw std::invalid_argument("more than 2^32 sequences of one key");
}

}  // namespace

SequenceSet draw_sequences(const SequenceProblem& problem, std::uint64_t seed, Stream stream, std::uint32_t step,
                           std::size_t first, std::size_t count) {
  check(problem, first, count);
  SequenceSet set{count, problem.length, problem.state_dimension, {}};
  const auto size = static_cast<std::size_t>(problem.length + 1) * static_cast<std::size_t>(problem.state_dimension);
  set.states.resize(count * size);
  SequenceSource source(problem);
  for (std::size_t k = 0; k < count; ++k) {
    source.draw({seed, stream, step, static_cast<std::uint32_t>(first + k)}, set.states.data() + k * size);
  }
  return set;
}

}  // namespace iclflow
