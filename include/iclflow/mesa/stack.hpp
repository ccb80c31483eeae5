#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace iclflow {

enum class LayerKind : std::uint8_t { linear, softmax, mesa };
enum class TokenKind : std::uint8_t {
  constructed,  ///< e_t = [0, s_t, s_t, s_{t-1}], s_0 = 0; the prediction is the first n coordinates of the output
  raw           ///< e_t = E s_t, positions concatenated before q and k of the first layer; prediction F e_t
};
enum class MesaSolver : std::uint8_t { rank_one, conjugate_gradients };

/// A stack of causal self-attention layers on a residual stream, clipped after every layer (theory: 13-stack.md).
struct StackShape {
  std::vector<LayerKind> layers{LayerKind::linear};
  int state_dimension = 10;  ///< n
  TokenKind tokens = TokenKind::constructed;
  int width = 40;              ///< D of the residual stream; 4 n for constructed tokens
  int position_dimension = 0;  ///< of the sinusoidal code; raw tokens only
  int heads = 4;
  int key_dimension = 20;       ///< of keys, queries and values of each head
  double clip = 0.0;            ///< activations are clipped to [-clip, clip] after every layer; 0: not
  bool mask_second = false;     ///< constructed tokens without their second channel: [0, 0, s_t, s_{t-1}]
  bool normalise_keys = false;  ///< keys and queries have length 1 (softmax and mesa layers)
  MesaSolver solver = MesaSolver::rank_one;
  int solver_iterations = 30;  ///< of conjugate gradients
  bool forgetting = false;     ///< mesa: gamma_t = sigmoid(g . e_t + b), constant Lambda = 1 / lambda

  [[nodiscard]] int channels() const { return heads * key_dimension; }
};

/// Where a layer's matrices stand in the flat parameters; all row-major, row = output, column = input.
struct LayerOffsets {
  Eigen::Index query = 0;   ///< H k x input (input = width, of the first layer width + position_dimension)
  Eigen::Index key = 0;     ///< H k x input
  Eigen::Index value = 0;   ///< H k x width
  Eigen::Index output = 0;  ///< P: width x H k
  Eigen::Index rho = 0;     ///< H, mesa only: lambda_h = exp(rho_h)
  Eigen::Index gate = 0;    ///< H x (width + 1), mesa with forgetting only: g, then b
  int input = 0;            ///< columns of query and key
};
struct StackLayout {
  Eigen::Index embedding = 0;  ///< E, width x n, raw tokens only
  std::vector<LayerOffsets> layers;
  Eigen::Index readout = 0;  ///< F, n x width, raw tokens only
  Eigen::Index size = 0;

  [[nodiscard]] static StackLayout of(const StackShape& shape);
};

/// Inputs and targets of a batch: arrays count x length x n.
struct StackBatch {
  std::size_t count = 0;
  int length = 0;
  std::vector<double> inputs;
  std::vector<double> targets;
  std::vector<double> position_weights;  ///< of the loss, one per position; empty: 1 / length each
};

/// The model. Loss = mean over the batch of sum_t w_t |target_t - f_t|^2 / 2 (theory: eq:autoregressive-loss).
/// Same bits for any number of threads. Throws std::invalid_argument when sizes do not fit.
class Stack {
 public:
  virtual ~Stack() = default;
  [[nodiscard]] virtual const StackShape& shape() const = 0;
  [[nodiscard]] virtual const StackLayout& layout() const = 0;

  [[nodiscard]] virtual double loss(const Eigen::VectorXd& parameters, const StackBatch& batch) = 0;
  /// Sum of the loss and its gradient; input_gradient (count x length x n), where wanted, with respect to the inputs.
  virtual double gradient(const Eigen::VectorXd& parameters, const StackBatch& batch, Eigen::VectorXd& gradient,
                          std::vector<double>* input_gradient = nullptr) = 0;
  /// f_t: count x length x n.
  [[nodiscard]] virtual std::vector<double> predictions(const Eigen::VectorXd& parameters, const StackBatch& batch) = 0;
  /// Residual stream after `layer` layers (0: the tokens), clipped: count x length x width. After the last layer of
  /// constructed tokens only the first n coordinates are formed; the others are zero.
  [[nodiscard]] virtual std::vector<double> stream(const Eigen::VectorXd& parameters, const StackBatch& batch,
                                                   int layer) = 0;
};

enum class StackPrecision : std::uint8_t { single_precision, double_precision };
/// Throws std::invalid_argument with one sentence for a shape that cannot be.
[[nodiscard]] std::unique_ptr<Stack> make_stack(const StackShape& shape, StackPrecision precision, int threads = 1);

}  // namespace iclflow
