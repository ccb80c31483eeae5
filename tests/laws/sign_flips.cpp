// The symmetry behind the reduction (theory: 02-reduction.md): flipping the sign of one coordinate of all x_l, q and of
// row j of Ghat, or of one response, leaves the data law and decomposable weights unchanged. Averaged over flips, the
// full gradient therefore has no component off the spectral manifold, at every L and d.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/projection.hpp"
#include "support/problems.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(sign_flips)

namespace {

/// Sylvester's Hadamard matrix of order 8 >= d_x + d_y = 7: any two rows are orthogonal.
double hadamard(std::size_t row, std::size_t column) {
  return __builtin_popcountll(row & column) % 2 == 0 ? 1.0 : -1.0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(flip_averaged_gradient_stays_on_the_manifold) {
  for (const Parametrisation parametrisation : {Parametrisation::merged, Parametrisation::split}) {
    const Problem p = problems::uneven(parametrisation);
    const WeightLayout layout = WeightLayout::of(p);
    InitialState start = random_start(p, 0.7, 12);
    if (parametrisation == Parametrisation::split) start.inert = 0.4;
    const Eigen::VectorXd weights = embed(p, rotations(p), start);
    PackedWeights<double> packed(layout), slope(layout);
    packed.set(acting(layout, weights));
    const ContextSampler<double> sampler(p);
    auto context = sampler.empty();
    auto flipped = sampler.empty();
    auto scratch = sampler.scratch();
    TokenPass<double> pass(packed, context.length, padded(context.dimension));
    const std::size_t d = context.dimension;
    for (std::uint32_t c = 0; c < 20; ++c) {
      sampler.draw({2, Stream::training, 0, c}, context, scratch);
      for (std::size_t column = 0; column < 8; ++column) {
        for (std::size_t row = 0; row < d + context.tasks; ++row) {
          for (std::size_t l = 0; l < context.stride; ++l) {
            flipped.tokens[row * context.stride + l] = hadamard(row, column) * context.tokens[row * context.stride + l];
          }
        }
        for (std::size_t j = 0; j < d; ++j) flipped.query[j] = hadamard(j, column) * context.query[j];
        for (std::size_t i = 0; i < context.tasks; ++i) flipped.target[i] = hadamard(d + i, column) * context.target[i];
        pass(packed, flipped, slope);
      }
    }
    const ActingWeights gradient = slope.unpacked();
    double on = 0.0;
    double off = 0.0;
    for (std::size_t h = 0; h < gradient.key_query.size(); ++h) {
      const Matrix& m = gradient.key_query[h];
      const Matrix& a = gradient.output_value[h];
      on += m.topRows(p.dimension()).diagonal().squaredNorm() + a.rightCols(p.tasks()).diagonal().squaredNorm();
      off += m.squaredNorm() + a.squaredNorm() - m.topRows(p.dimension()).diagonal().squaredNorm() -
             a.rightCols(p.tasks()).diagonal().squaredNorm();
    }
    // Sums of 160 contexts that cancel to rounding; `off` is a difference of squares, hence the square root of 1e-16.
    BOOST_TEST(on > 1.0);
    BOOST_TEST(std::sqrt(std::abs(off) / on) < 1e-7);
    BOOST_TEST(std::abs(gradient.key_query[0](0, 1)) < 1e-12 * std::sqrt(on));
  }
}

BOOST_AUTO_TEST_SUITE_END()
