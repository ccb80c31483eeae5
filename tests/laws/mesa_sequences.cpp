#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "iclflow/mesa/sequences.hpp"
#include "iclflow/random/normals.hpp"

using namespace iclflow;
using Eigen::MatrixXd;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

SequenceSet sequences(const SequenceProblem& problem, std::size_t count) {
  return draw_sequences(problem, 1, Stream::sequences, 0, 0, count);
}

/// States first .. first + count - 1 of a sequence as columns.
MatrixXd states(const SequenceSet& set, std::size_t sequence, int first, int count) {
  return Eigen::Map<const MatrixXd>(set.state(sequence, first), set.dimension, count);
}

/// Least squares W of W from = to.
MatrixXd transition(const MatrixXd& from, const MatrixXd& to) {
  return from.transpose().colPivHouseholderQr().solve(to.transpose()).transpose();
}

/// Mean and its standard error.
struct Sample {
  double count = 0.0, sum = 0.0, squares = 0.0;
  void add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] double error() const { return std::sqrt((squares / count - mean() * mean()) / (count - 1.0)); }
  /// Distance from an expected mean in standard errors: 4.5 is passed in 7e-6 of cases.
  [[nodiscard]] double z(double expected) const { return (mean() - expected) / error(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(mesa_sequences)

// Half of |s|^2, which rotations keep and to which every step adds its noise: (n / 3 + n sigma^2 (T + 1) / 2) / 2.
BOOST_AUTO_TEST_CASE(zero_predictor_has_the_loss_of_accumulated_noise) {
  for (const double noise : {0.01, 0.3}) {
    SequenceProblem problem;
    problem.noise_deviation = noise;
    const SequenceSet set = sequences(problem, 8000);
    Sample loss;
    for (std::size_t k = 0; k < set.count; ++k) loss.add(0.5 * states(set, k, 1, 50).squaredNorm() / 50.0);
    const double expected = (10.0 / 3.0 + 10.0 * noise * noise * 25.5) / 2.0;
    if (noise == 0.01) BOOST_TEST(std::abs(expected - 1.6794) < 5e-5);
    BOOST_TEST(std::abs(loss.z(expected)) < 4.5, "noise " << noise << ": " << loss.mean() << " +- " << loss.error());
  }
}

BOOST_AUTO_TEST_CASE(initial_states_have_their_law) {
  for (const InitialLaw law : {InitialLaw::uniform, InitialLaw::normal}) {
    SequenceProblem problem;
    problem.length = 1;
    problem.initial = law;
    const SequenceSet set = sequences(problem, 4000);
    Sample first, second, fourth;
    double largest = 0.0;
    for (std::size_t k = 0; k < set.count; ++k) {
      for (int i = 0; i < 10; ++i) {
        const double s = set.state(k, 0)[i];
        first.add(s);
        second.add(s * s);
        fourth.add(s * s * s * s);
        largest = std::max(largest, std::abs(s));
      }
    }
    const bool uniform = law == InitialLaw::uniform;
    BOOST_TEST(std::abs(first.z(0.0)) < 4.5);
    BOOST_TEST(std::abs(second.z(uniform ? 1.0 / 3.0 : 1.0)) < 4.5);
    BOOST_TEST(std::abs(fourth.z(uniform ? 0.2 : 3.0)) < 4.5);
    BOOST_TEST((largest <= 1.0) == uniform);
  }
}

// Traces of Haar-random orthogonal matrices: E tr W = 0, E (tr W)^2 = 1, E tr W^2 = 1, E tr W^3 = 0 (Diaconis and
// Shahshahani 1994); E W_ij^4 = 3 / (n (n + 2)). Q of a QR decomposition without R's signs has E tr W != 0.
BOOST_AUTO_TEST_CASE(transitions_are_haar_random) {
  SequenceProblem problem;
  problem.noise_deviation = 0.0;
  const SequenceSet set = sequences(problem, 4000);
  Sample trace, square_of_trace, trace_of_square, trace_of_cube, determinant, corner, last;
  double error = 0.0;
  for (std::size_t k = 0; k < set.count; ++k) {
    const MatrixXd W = transition(states(set, k, 0, 50), states(set, k, 1, 50));
    error = std::max(error, (W * W.transpose() - MatrixXd::Identity(10, 10)).norm());
    trace.add(W.trace());
    square_of_trace.add(W.trace() * W.trace());
    trace_of_square.add((W * W).trace());
    trace_of_cube.add((W * W * W).trace());
    determinant.add(W.determinant());
    corner.add(std::pow(W(0, 0), 4));
    last.add(std::pow(W(9, 9), 4));
  }
  // Rounding times the condition of 50 powers of W on a random vector: of 4000, the worst is some 1e4.
  BOOST_TEST(error < 1e6 * epsilon);
  BOOST_TEST(std::abs(trace.z(0.0)) < 4.5);
  BOOST_TEST(std::abs(square_of_trace.z(1.0)) < 4.5);
  BOOST_TEST(std::abs(trace_of_square.z(1.0)) < 4.5);
  BOOST_TEST(std::abs(trace_of_cube.z(0.0)) < 4.5);
  BOOST_TEST(std::abs(determinant.z(0.0)) < 4.5);
  BOOST_TEST(std::abs(corner.z(3.0 / 120.0)) < 4.5);
  BOOST_TEST(std::abs(last.z(3.0 / 120.0)) < 4.5);
}

BOOST_AUTO_TEST_CASE(a_set_does_not_depend_on_its_pieces) {
  for (const SequenceKind kind : {SequenceKind::orthogonal, SequenceKind::partial, SequenceKind::nonlinear,
                                  SequenceKind::contracting, SequenceKind::fixed}) {
    SequenceProblem problem;
    problem.kind = kind;
    problem.hidden_dimension = 15;
    problem.observation_noise_deviation = 0.1;
    const SequenceSet whole = draw_sequences(problem, 7, Stream::training, 3, 0, 9);
    for (const std::size_t begin : {0U, 4U}) {
      const SequenceSet piece = draw_sequences(problem, 7, Stream::training, 3, begin, 4);
      BOOST_TEST(std::equal(piece.states.begin(), piece.states.end(), whole.state(begin, 0)));
    }
    for (const auto& other :
         {draw_sequences(problem, 8, Stream::training, 3, 0, 1), draw_sequences(problem, 7, Stream::sequences, 3, 0, 1),
          draw_sequences(problem, 7, Stream::training, 4, 0, 1)}) {
      BOOST_TEST(other.states[0] != whole.states[0]);
    }
  }
}

// z_t, k observations under each other, determines h_t when k n_s >= n_h, and then s_{t+1} = Phi_k z_t exactly
// (theory: eq:partial-map); with fewer it does not.
BOOST_AUTO_TEST_CASE(stacked_observations_make_partial_observation_linear) {
  SequenceProblem problem;
  problem.kind = SequenceKind::partial;
  problem.state_dimension = 5;
  problem.hidden_dimension = 15;
  problem.length = 80;
  problem.noise_deviation = 0.0;
  const SequenceSet set = sequences(problem, 20);
  for (std::size_t k = 0; k < set.count; ++k) {
    for (const int stacked : {2, 3}) {
      const int columns = 81 - stacked;
      MatrixXd z(5 * stacked, columns);
      for (int row = 0; row < stacked; ++row) z.middleRows(5 * row, 5) = states(set, k, row, columns);
      const MatrixXd next = states(set, k, stacked, columns);
      const double residual = (transition(z, next) * z - next).norm() / next.norm();
      // backward stable least squares: rounding times the rows' number, whatever the condition
      BOOST_TEST((residual < 1e3 * epsilon) == (stacked == 3), residual);
      if (stacked == 2) BOOST_TEST(residual > 1e-2);
    }
  }
}

BOOST_AUTO_TEST_CASE(contracting_moduli_lie_where_they_are_drawn) {
  SequenceProblem problem;
  problem.kind = SequenceKind::contracting;
  problem.state_dimension = 4;
  problem.length = 4;
  problem.noise_deviation = 0.0;
  const SequenceSet set = sequences(problem, 2000);
  double low = 1.0, high = 0.0;
  int known = 0;
  for (std::size_t k = 0; k < set.count; ++k) {
    const MatrixXd all = states(set, k, 0, 5);
    BOOST_TEST(all.cwiseAbs().maxCoeff() <= 2.0);
    if (all.cwiseAbs().maxCoeff() == 2.0) continue;  // clipped
    const MatrixXd from = all.leftCols(4);
    const Eigen::EigenSolver<MatrixXd> solver(transition(from, all.rightCols(4)));
    const Eigen::JacobiSVD<MatrixXd> given(from);
    const Eigen::JacobiSVD<Eigen::MatrixXcd> vectors(solver.eigenvectors());
    const auto condition = [](const auto& svd) { return svd.singularValues()(0) / svd.singularValues()(3); };
    // Bauer and Fike: eigenvalues move by cond(V) times the error of W, which is cond(S) roundings.
    const double error = 100.0 * epsilon * condition(given) * condition(vectors);
    if (!(error < 1e-6)) continue;
    ++known;
    const double smallest = solver.eigenvalues().cwiseAbs().minCoeff();
    const double largest = solver.eigenvalues().cwiseAbs().maxCoeff();
    BOOST_TEST(smallest > 0.3 - error);
    BOOST_TEST(largest < 0.9 + error);
    low = std::min(low, smallest);
    high = std::max(high, largest);
  }
  BOOST_TEST(known > 1000);
  // Of more than 1000 draws one lies within .01 of either end, but for (1 - .01 / .6)^1000 = 5e-8.
  BOOST_TEST(low < 0.31);
  BOOST_TEST(high > 0.89);
}

// h_{t+1} = W f*(h_t) with the teacher written out again, and W orthogonal; fixed: one W for all.
BOOST_AUTO_TEST_CASE(shared_teachers_are_those_of_their_seed) {
  SequenceProblem problem;
  problem.noise_deviation = 0.0;
  problem.kind = SequenceKind::nonlinear;
  problem.teacher_seed = 5;
  problem.length = 200;
  std::vector<double> numbers(6000);
  fill_normals({5, Stream::teacher, 0, 0}, 0, numbers.data(), numbers.size());
  const MatrixXd A = 1.1 * Eigen::Map<MatrixXd>(numbers.data(), 300, 10);
  const MatrixXd B = 1.1 * Eigen::Map<MatrixXd>(numbers.data() + 3000, 10, 300);
  SequenceSet set = sequences(problem, 3);
  for (std::size_t k = 0; k < set.count; ++k) {
    MatrixXd hidden = A * states(set, k, 0, 200);
    hidden = hidden.unaryExpr([](double z) { return 0.5 * z * std::erfc(-z / std::numbers::sqrt2); });
    MatrixXd taught = B * hidden;
    taught.colwise().normalize();
    const MatrixXd W = transition(taught, states(set, k, 1, 200));
    // 300 roundings times the condition of the taught states, some 1e2
    BOOST_TEST((W * W.transpose() - MatrixXd::Identity(10, 10)).norm() < 1e6 * epsilon);
  }
  problem.kind = SequenceKind::fixed;
  set = sequences(problem, 2);
  const MatrixXd W = transition(states(set, 0, 0, 200), states(set, 0, 1, 200));
  const MatrixXd other = transition(states(set, 1, 0, 200), states(set, 1, 1, 200));
  BOOST_TEST((W - other).norm() < 1e6 * epsilon);
  BOOST_TEST((W * W.transpose() - MatrixXd::Identity(10, 10)).norm() < 1e6 * epsilon);
}

BOOST_AUTO_TEST_CASE(impossible_problems_are_refused) {
  SequenceProblem problem;
  problem.length = 0;
  BOOST_CHECK_THROW(static_cast<void>(sequences(problem, 1)), std::invalid_argument);
  problem.length = 1;
  problem.noise_deviation = -1.0;
  BOOST_CHECK_THROW(static_cast<void>(sequences(problem, 1)), std::invalid_argument);
  problem.noise_deviation = 0.0;
  BOOST_CHECK_THROW(static_cast<void>(draw_sequences(problem, 1, Stream::sequences, 0, 0xFFFFFFFFU, 1)),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
