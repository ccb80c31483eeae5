#pragma once

#include <Eigen/Core>
#include <optional>
#include <string>

#include "iclflow/spectral/mobility.hpp"
#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

/// ell = copies (constant - linear s + quadratic s^2 / 2) of a product s = a b that `copies` equal pairs of parameters
/// share; quadratic > 0. The gradient of one pair is that of one copy. Source: theory/12-autoregressive-flow.md.
struct ProductLoss {
  double constant = 0.0;
  double linear = 0.0;
  double quadratic = 1.0;
  double copies = 1.0;

  [[nodiscard]] double value(double product) const;
  /// linear / quadratic, where the loss is smallest.
  [[nodiscard]] double limit() const { return linear / quadratic; }
};

/// a b at time t of the gradient flow a' = b (A - B a b), b' = a (A - B a b), in closed form for every start.
[[nodiscard]] double product_at(const ProductLoss& loss, double a, double b, double t);
/// Time at which a balanced product (a = b) that starts at `start` > 0 is at `product`; empty when it never is.
[[nodiscard]] std::optional<double> time_of_product(const ProductLoss& loss, double start, double product);

/// The same flow as an ODE of one product under the mobility of a pair (charts of theory/04-flow.md).
/// Observables: loss, a, b, product, leakage (0: the flow never leaves its two parameters).
class ProductFlow final : public OdeSystem {
 public:
  ProductFlow(const ProductLoss& loss, double a, double b);

  [[nodiscard]] Eigen::VectorXd initial() const override;
  void declare(Trajectory& trajectory) const override;
  void observe(const Eigen::VectorXd& y, Trajectory& trajectory) const override;
  /// "loss", "a", "b", "product", "leakage".
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& y) const override;
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override;
  void error_scale(const Eigen::VectorXd& y, double absolute, double relative, Eigen::VectorXd& scale) const override;
  [[nodiscard]] bool has_jacobian() const override { return true; }
  void jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const override;
  [[nodiscard]] std::string component(Eigen::Index i) const override;

 private:
  struct Pair {
    double a;
    double b;
  };
  [[nodiscard]] double product(const Eigen::VectorXd& y) const;
  [[nodiscard]] Pair pair(double product) const;

  ProductLoss loss_;
  Pair start_;
  double imbalance_;  ///< C = a^2 - b^2, conserved
  Mobility mobility_;
};

}  // namespace iclflow
