#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "iclflow/mesa/unitary_sequences.hpp"
#include "iclflow/random/stream.hpp"
#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

/// All parameters of one layer of complex linear self-attention on the tokens e_t = (x_t, x_{t-1}):
///   yhat_t = P (1/(t-1)) sum_{i=2}^t e_i e_i^* Q e_t,   P: d x 2d (value and output), Q: 2d x 2d (key and query).
/// Flat: Re P, Im P, Re Q, Im Q, each row-major. The two blocks that the reduction keeps are b I, the left half of P,
/// and a I, lower left in Q.
struct ComplexAttentionLayout {
  Eigen::Index d = 0;

  [[nodiscard]] Eigen::Index size() const { return 12 * d * d; }
  [[nodiscard]] Eigen::Index value(Eigen::Index row, Eigen::Index column, bool imaginary = false) const {
    return (imaginary ? 2 * d * d : 0) + row * 2 * d + column;
  }
  [[nodiscard]] Eigen::Index key_query(Eigen::Index row, Eigen::Index column, bool imaginary = false) const {
    return 4 * d * d + (imaginary ? 4 * d * d : 0) + row * 2 * d + column;
  }
};

/// Means of the two blocks' diagonals (real parts), and everything that they do not explain.
struct TwoParameters {
  double a = 0.0;
  double b = 0.0;
  double leakage = 0.0;  ///< root sum of squares of the difference from (a I, b I)
};
[[nodiscard]] TwoParameters two_parameters(const ComplexAttentionLayout& layout, const Eigen::VectorXd& weights);

struct ComplexAttentionOptions {
  UnitarySequences sequences{};
  double a = 0.1;
  double b = 0.1;
  double perturbation = 0.0;   ///< standard deviation that is added to every trained entry, keyed by the seed
  bool active_blocks = false;  ///< trains the two blocks only
  std::uint64_t seed = 1;
  int batch = 200;
  int evaluation_contexts = 2000;
  int threads = 1;  ///< never changes a bit of the result
};

/// Full-parameter stochastic gradient descent on fresh sequences; the loss is half the squared error, summed over t and
/// coordinates. Rotations stay real: imaginary parts of weights are and remain exactly zero.
/// Observables of ProductFlow, and loss_standard_error. The recorded loss is the closed form at s = a b plus the mean
/// over fixed sequences of the difference to the reduced model's loss on the same sequences; its error is that of the
/// mean. Throws std::invalid_argument for sizes that cannot be.
[[nodiscard]] std::unique_ptr<DescentSystem> make_complex_attention(const ComplexAttentionOptions& options);

/// Mean over a sample of sequences of the loss and of its gradient (in the flat layout), for checks.
struct ComplexAttentionGradient {
  double loss = 0.0;
  Eigen::VectorXd gradient;
};
[[nodiscard]] ComplexAttentionGradient complex_attention_gradient(const UnitarySequences& sequences,
                                                                  const Eigen::VectorXd& weights, std::uint64_t seed,
                                                                  Stream stream, std::uint32_t step, std::size_t count,
                                                                  int threads);

}  // namespace iclflow
