#include <Eigen/Geometry>
#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/score_space_gradient.hpp"
#include "iclflow/attention/score_space_kernels.hpp"
#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "support/plain_score_space.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(attention_score_space_gradient)

namespace {

constexpr StreamKey key{11, Stream::score_space, 4, 0};
constexpr std::size_t contexts = 150;  // several parts, and a group that is not full

/// Two double-precision evaluations of sums of about 10^3 terms of order one, through exp.
constexpr double rounding = 1e-11;

template <typename T>
typename ScoreSpaceGradient<T>::Result estimate(const Problem& p, const ActingWeights& weights, int threads = 1) {
  ThreadTeam team(threads);
  ScoreSpaceGradient<T> gradient(p, WeightLayout::of(p), rotations(p), team);
  return gradient(weights, key, contexts);
}

/// The twin works in the Phi, Psi basis.
void check_against_plain(const Problem& p, const ActingWeights& weights) {
  const Rotations basis = rotations(p);
  const int d = p.dimension();
  const int tasks = p.tasks();
  std::vector<Matrix> w, u;
  for (std::size_t h = 0; h < weights.key_query.size(); ++h) {
    w.emplace_back(basis.phi.transpose() * weights.key_query[h].topRows(d) * basis.phi);
    u.emplace_back(basis.psi.transpose() * weights.output_value[h].rightCols(tasks) * basis.psi);
  }
  const plain::ScoreSpaceSlope expected = plain::score_space_mean(p, w, u, key, contexts);
  const auto found = estimate<double>(p, weights);
  BOOST_TEST(std::abs(found.loss - expected.loss) < rounding * expected.loss);
  for (std::size_t h = 0; h < w.size(); ++h) {
    const Matrix slope_w = basis.phi.transpose() * found.gradient.key_query[h].topRows(d) * basis.phi;
    const Matrix slope_u = basis.psi.transpose() * found.gradient.output_value[h].rightCols(tasks) * basis.psi;
    BOOST_TEST(expected.w[h].norm() > 1e-4);
    BOOST_TEST((slope_w - expected.w[h]).norm() < rounding * (1.0 + expected.w[h].norm()));
    BOOST_TEST((slope_u - expected.u[h]).norm() < rounding * (1.0 + expected.u[h].norm()));
    BOOST_TEST(found.gradient.key_query[h].bottomRows(tasks).norm() == 0.0);
    BOOST_TEST(found.gradient.output_value[h].leftCols(d).norm() == 0.0);
  }
}

ActingWeights dense(const Problem& p, double scale = 0.6) {
  const WeightLayout layout = WeightLayout::of(p);
  return acting(layout, problems::dense_weights(layout, scale, 3));
}

/// More coordinates than heads, uneven tasks, a block of one coordinate.
Problem wide(int heads, Rotation rotation = Rotation::identity) {
  Problem p = problems::uneven(Parametrisation::merged, rotation);
  p.task_dimensions = {4, 1, 6};
  p.signal_variance = {1.0, 0.6, 1.4};
  p.heads = heads;
  return p;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equals_the_plain_formula_for_any_number_of_heads) {
  for (const int heads : {1, 2, 3, 4, 5, 8, 11, 13}) {
    BOOST_TEST_CONTEXT(heads << " heads") { check_against_plain(wide(heads), dense(wide(heads))); }
  }
}

// The dense weights above are long enough for their linear part to be scaled down, these are not.
BOOST_AUTO_TEST_CASE(equals_the_plain_formula_at_small_weights) { check_against_plain(wide(3), dense(wide(3), 0.1)); }

BOOST_AUTO_TEST_CASE(equals_the_plain_formula_in_rotated_bases_and_for_one_task) {
  check_against_plain(wide(4, Rotation::random), dense(wide(4, Rotation::random)));
  Problem p = wide(2);
  p.task_dimensions = {7};
  p.signal_variance = {1.3};
  check_against_plain(p, dense(p));
}

BOOST_AUTO_TEST_CASE(equals_the_plain_formula_where_directions_coincide) {
  const Problem p = wide(4);
  ActingWeights weights = dense(p);
  weights.key_query[1] = weights.key_query[0];  // equal heads
  weights.key_query[3] = -2.0 * weights.key_query[2];
  check_against_plain(p, weights);
  weights.key_query[2].setZero();  // a head without direction
  check_against_plain(p, weights);
}

namespace {

/// One context with given tokens as the token pass reads it.
void fill(const Eigen::MatrixXd& x, const Eigen::VectorXd& q, const Eigen::MatrixXd& task_weights,
          const Eigen::MatrixXd& noise, Context<double>& context) {
  const Eigen::MatrixXd y = task_weights.transpose() * x + noise;
  for (Eigen::Index l = 0; l < x.cols(); ++l) {
    for (Eigen::Index j = 0; j < x.rows(); ++j) {
      context.tokens[static_cast<std::size_t>(j) * context.stride + static_cast<std::size_t>(l)] = x(j, l);
    }
    for (Eigen::Index i = 0; i < y.rows(); ++i) context.response(static_cast<std::size_t>(i))[l] = y(i, l);
  }
  std::copy(q.begin(), q.end(), context.query.get());
  const Eigen::VectorXd target = task_weights.transpose() * q;
  std::copy(target.begin(), target.end(), context.target.get());
}

/// Weighted sum of token gradients over a product rule in the covariates' parts orthogonal to B (three Gauss-Hermite
/// nodes: exact to degree 5, the gradient has degree 3), and in G and eps (nodes +-1: exact to degree 3, it has degree
/// 2). Given q and Z it is the expectation of the token gradient to rounding.
struct Cubature {
  const Problem& p;
  const PackedWeights<double>& weights;
  Eigen::VectorXd q;
  Eigen::MatrixXd inside, outside;  ///< B Z^T (d x L); orthonormal complement of B
  double loss = 0.0;
  PackedWeights<double> gradient;

  void run() {
    const auto length = static_cast<std::size_t>(p.context_length);
    const auto free = static_cast<std::size_t>(outside.cols()) * length;
    const std::size_t signs = static_cast<std::size_t>(p.dimension()) + static_cast<std::size_t>(p.tasks()) * length;
    Context<double> context(static_cast<std::size_t>(p.dimension()), static_cast<std::size_t>(p.tasks()), length);
    TokenPass<double> pass(weights, length, padded(context.dimension));
    PackedWeights<double> sum(WeightLayout::of(p));
    const auto nodes = static_cast<std::size_t>(std::lround(std::pow(3.0, static_cast<double>(free))));
    for (std::size_t node = 0; node < nodes; ++node) {
      double weight = std::ldexp(1.0, -static_cast<int>(signs));
      Eigen::MatrixXd x = inside;
      std::size_t digits = node;
      for (Eigen::Index l = 0; l < x.cols(); ++l) {
        for (Eigen::Index k = 0; k < outside.cols(); ++k, digits /= 3) {
          weight *= digits % 3 == 1 ? 2.0 / 3.0 : 1.0 / 6.0;
          x.col(l) += (static_cast<double>(digits % 3) - 1.0) * std::sqrt(3.0) * outside.col(k);
        }
      }
      sum.clear();
      double losses = 0.0;
      for (std::size_t pattern = 0; pattern < (std::size_t{1} << signs); ++pattern) {
        fill(x, q, task_weights(pattern), noise(pattern >> static_cast<std::size_t>(p.dimension())), context);
        losses += pass(weights, context, sum);
      }
      loss += weight * losses;
      const std::size_t width = gradient.width();
      for (std::size_t n = 0; n < gradient.dimension * width; ++n) gradient.key_query[n] += weight * sum.key_query[n];
      for (std::size_t n = 0; n < gradient.tasks * width; ++n) {
        gradient.output_value[n] += weight * sum.output_value[n];
      }
    }
  }

  [[nodiscard]] static double sign(std::size_t pattern, Eigen::Index bit) {
    return (pattern >> static_cast<std::size_t>(bit)) % 2 == 0 ? 1.0 : -1.0;
  }
  [[nodiscard]] Eigen::MatrixXd task_weights(std::size_t pattern) const {
    Eigen::MatrixXd result = Eigen::MatrixXd::Zero(p.dimension(), p.tasks());
    const std::vector<int> task = p.task_of_coordinate();
    for (Eigen::Index j = 0; j < p.dimension(); ++j) {
      const int i = task[static_cast<std::size_t>(j)];
      result(j, i) = p.response_factor() * std::sqrt(p.signal_variance[static_cast<std::size_t>(i)]) * sign(pattern, j);
    }
    return result;
  }
  [[nodiscard]] Eigen::MatrixXd noise(std::size_t pattern) const {
    Eigen::MatrixXd result(p.tasks(), p.context_length);
    for (Eigen::Index n = 0; n < result.size(); ++n) result(n) = std::sqrt(p.noise_variance) * sign(pattern, n);
    return result;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(is_the_mean_of_token_gradients_given_the_draw) {
  Problem p = problems::uneven(Parametrisation::merged);
  p.heads = 2;
  p.task_dimensions = {2, 1};
  p.context_length = 3;
  const WeightLayout layout = WeightLayout::of(p);
  for (const bool equal_heads : {false, true}) {
    ActingWeights blocks = dense(p, 0.8);
    if (equal_heads) blocks.key_query[1] = blocks.key_query[0];
    PackedWeights<double> packed(layout);
    packed.set(blocks);
    NormalStream normal({2, Stream::initial, 5, 0});
    Eigen::VectorXd q(p.dimension());
    for (double& entry : q) entry = normal();
    std::vector<Matrix> w, u;
    Eigen::MatrixXd directions(p.dimension(), p.heads);
    for (std::size_t h = 0; h < 2; ++h) {
      w.emplace_back(blocks.key_query[h].topRows(p.dimension()));
      u.emplace_back(blocks.output_value[h].rightCols(p.tasks()));
      directions.col(static_cast<Eigen::Index>(h)) = w[h] * q;
    }
    // Both kinds of B: of the rank of V, with a zero column for equal heads; of a larger space that contains V's.
    Eigen::MatrixXd basis = plain::score_basis(directions);
    BOOST_TEST((basis.col(1).norm() < 0.5) == equal_heads);
    std::vector<Eigen::MatrixXd> choices{basis};
    if (equal_heads) {
      basis.col(1) = Eigen::Vector3d(basis.col(0)).unitOrthogonal();
      choices.push_back(basis);
    }
    for (const Eigen::MatrixXd& b : choices) {
      Eigen::MatrixXd z(p.context_length, 2);
      for (double& entry : z.reshaped()) entry = normal();
      Eigen::MatrixXd outside(3, 0);
      const Eigen::Vector3d first = b.col(0);
      if (b.col(1).norm() > 0.5) {
        outside = first.cross(Eigen::Vector3d(b.col(1)));
      } else {
        outside.resize(3, 2);
        outside.col(0) = first.unitOrthogonal();
        outside.col(1) = first.cross(Eigen::Vector3d(outside.col(0)));
      }
      Cubature tokens{p, packed, q, b * z.transpose(), outside, 0.0, PackedWeights<double>(layout)};
      tokens.run();
      const ActingWeights expected = tokens.gradient.unpacked();
      const plain::ScoreSpaceSlope found = plain::score_space_slope(p, w, u, q, b, z);
      BOOST_TEST(std::abs(found.loss - tokens.loss) < rounding * tokens.loss);
      for (std::size_t h = 0; h < 2; ++h) {
        const Matrix slope_w = expected.key_query[h].topRows(p.dimension());
        const Matrix slope_u = expected.output_value[h].rightCols(p.tasks());
        BOOST_TEST((found.w[h] - slope_w).norm() < rounding * slope_w.norm());
        BOOST_TEST((found.u[h] - slope_u).norm() < rounding * slope_u.norm());
      }
    }
  }
}

namespace {

/// Weights of a step by hand, the same in both precisions.
template <typename T>
ScoreSpaceWeights<T> packed(std::size_t heads) {
  ScoreSpaceWeights<T> weights(heads, 37, {0, 4, 5, 11});
  NormalStream normal({8, Stream::initial, 3, 0});
  const auto number = [&] { return static_cast<T>(static_cast<float>(0.3 * normal())); };
  for (std::size_t n = 0; n < heads * 11 * 11; ++n) weights.key_query[n] = number();
  std::vector<T> u(3 * heads);
  for (T& entry : u) entry = number();
  for (std::size_t k = 0; k < 3; ++k) {
    weights.amplitude[k] = 1;
    for (std::size_t h = 0; h < heads; ++h) {
      weights.own[k * heads + h] = u[k * heads + h];
      for (std::size_t g = 0; g < heads; ++g) {
        weights.shared[(k * heads + h) * heads + g] = u[k * heads + h] * u[k * heads + g];
        weights.noise[h * heads + g] += static_cast<T>(0.25) * u[k * heads + h] * u[k * heads + g];
      }
    }
  }
  weights.noise_variance = static_cast<T>(0.25);
  return weights;
}

/// |a - b| / |b|
double distance(const AlignedArray<float>& a, const AlignedArray<double>& b, std::size_t count) {
  double gap = 0.0;
  double size = 0.0;
  for (std::size_t n = 0; n < count; ++n) {
    gap += std::pow(static_cast<double>(a[n]) - b[n], 2);
    size += b[n] * b[n];
  }
  return std::sqrt(gap / size);
}

}  // namespace

BOOST_AUTO_TEST_CASE(single_precision_follows_double_on_given_normals) {
  for (const std::size_t heads : {std::size_t{1}, std::size_t{3}, std::size_t{6}, std::size_t{12}}) {
    const auto narrow_weights = packed<float>(heads);
    const auto wide_weights = packed<double>(heads);
    ScoreSpaceScratch<float> narrow(narrow_weights);
    ScoreSpaceScratch<double> wide(wide_weights);
    ScoreSpaceSums<float> narrow_sums(narrow_weights);
    ScoreSpaceSums<double> wide_sums(wide_weights);
    for (std::uint32_t group = 0; group < 4; ++group) {
      fill_normals({9, Stream::score_space, 0, group}, 0, narrow.normals.get(),
                   whole_groups<float>(narrow_weights.normals()));
      std::copy_n(narrow.normals.get(), wide_weights.normals(), wide.normals.get());
      for (std::size_t n = 0; n < contexts_per_group; ++n) {
        narrow.present[n] = 1.0F;
        wide.present[n] = 1.0;
      }
      score_space_group(narrow_weights, narrow, narrow_sums);
      score_space_group(wide_weights, wide, wide_sums);
    }
    // Rounding of float, 6e-8, through sums of some hundred terms, exp and an orthogonalisation; a factor ten for terms
    // that nearly cancel. Rows have their own padding, so W is compared row by row.
    BOOST_TEST(distance(narrow_sums.overlap, wide_sums.overlap, 3 * heads * heads * contexts_per_group) < 2e-5);
    BOOST_TEST(distance(narrow_sums.own, wide_sums.own, 3 * heads * contexts_per_group) < 2e-5);
    double gap = 0.0;
    double size = 0.0;
    for (std::size_t row = 0; row < heads * 11; ++row) {
      for (std::size_t j = 0; j < 11; ++j) {
        const double exact = wide_sums.key_query[row * wide_weights.width + j];
        gap += std::pow(static_cast<double>(narrow_sums.key_query[row * narrow_weights.width + j]) - exact, 2);
        size += exact * exact;
      }
    }
    BOOST_TEST(std::sqrt(gap / size) < 2e-5);
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_bits, *boost::unit_test::label("parallel")) {
  const Problem p = wide(3, Rotation::random);
  const ActingWeights weights = dense(p);
  const auto one = estimate<double>(p, weights, 1);
  for (const int threads : {2, 5}) {
    const auto many = estimate<double>(p, weights, threads);
    BOOST_TEST(many.loss == one.loss);
    for (std::size_t h = 0; h < one.gradient.key_query.size(); ++h) {
      BOOST_TEST((many.gradient.key_query[h].array() == one.gradient.key_query[h].array()).all());
      BOOST_TEST((many.gradient.output_value[h].array() == one.gradient.output_value[h].array()).all());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
