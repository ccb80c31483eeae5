#include "iclflow/spectral/product_flow.hpp"

#include <cmath>
#include <stdexcept>

namespace iclflow {

namespace {

Eigen::VectorXd one(double value) { return Eigen::VectorXd::Constant(1, value); }

/// Balanced: a = b or a = -b, with s = a b.
double balanced_at(const ProductLoss& loss, double start, double t) {
  if (start == 0.0) return 0.0;
  // s = (A/B) / (1 + (A/(B s0) - 1) exp(-2 A t)); the clock runs backwards for s < 0   theory: eq:product-balanced
  const double decay = std::exp(-2.0 * std::copysign(loss.linear, loss.linear * start) * t);
  const double ratio = loss.limit() / start;
  return loss.limit() / (1.0 + (ratio - 1.0) * decay);
}

/// C = a^2 - b^2 is not zero. w = (a + b)/(a - b) is a Moebius image of an exponential.
double imbalanced_at(const ProductLoss& loss, double a, double b, double t) {
  const double imbalance = (a - b) * (a + b);
  // k = B C / 4, D = sqrt(A^2 + 4 k^2), roots w+ = (A + D)/(2 k), w- = -1/w+
  // w = (w- (w+ - w0) E + w+ (w0 - w-)) / ((w+ - w0) E + w0 - w-), E = exp(-2 D t)
  // a b = (C/4)(w - 1/w)                                                  theory: eq:product-imbalanced
  const double k = 0.25 * loss.quadratic * imbalance;
  const double root = std::hypot(loss.linear, 2.0 * k);
  const double upper = (loss.linear + root) / (2.0 * k);
  const double lower = -1.0 / upper;
  const double w0 = (a + b) / (a - b);
  const double decay = (upper - w0) * std::exp(-2.0 * root * t);
  const double w = (lower * decay + upper * (w0 - lower)) / (decay + w0 - lower);
  return 0.25 * imbalance * (w - 1.0 / w);
}

}  // namespace

double ProductLoss::value(double product) const {
  return copies * (constant - linear * product + 0.5 * quadratic * product * product);
}

double product_at(const ProductLoss& loss, double a, double b, double t) {
  return std::abs(a) == std::abs(b) ? balanced_at(loss, a * b, t) : imbalanced_at(loss, a, b, t);
}

std::optional<double> time_of_product(const ProductLoss& loss, double start, double product) {
  // t = log[(A/(B s0) - 1)/(A/(B s) - 1)] / (2 A)                         theory: eq:product-time
  const double ratio = (loss.limit() / start - 1.0) / (loss.limit() / product - 1.0);
  if (!(start > 0.0 && product > 0.0 && ratio >= 1.0 && std::isfinite(ratio))) return std::nullopt;
  return std::log(ratio) / (2.0 * loss.linear);
}

ProductFlow::ProductFlow(const ProductLoss& loss, double a, double b)
    : loss_(loss),
      start_{a, b},
      imbalance_((a - b) * (a + b)),
      mobility_(Mobility::split(one(a * b), one(imbalance_), one(1.0))) {}

double ProductFlow::product(const Eigen::VectorXd& y) const {
  Eigen::VectorXd x(1);
  mobility_.from_chart(y, x);
  return x(0);
}

/// a^2 + b^2 = sqrt(C^2 + 4 s^2): the larger of the two never vanishes and keeps its sign; without imbalance both do.
ProductFlow::Pair ProductFlow::pair(double product) const {
  const double sum = std::hypot(imbalance_, 2.0 * product);
  const double larger = std::sqrt(0.5 * (sum + std::abs(imbalance_)));
  if (larger == 0.0) return {0.0, 0.0};
  if (imbalance_ >= 0.0) {
    const double a = std::copysign(larger, start_.a);
    return {a, product / a};
  }
  const double b = std::copysign(larger, start_.b);
  return {product / b, b};
}

Eigen::VectorXd ProductFlow::initial() const {
  Eigen::VectorXd y(1);
  mobility_.to_chart(one(start_.a * start_.b), y);
  return y;
}

void ProductFlow::declare(Trajectory& trajectory) const {
  trajectory.declare("loss", "population loss: half the squared error, summed over predictions and coordinates");
  trajectory.declare("a", "key-query parameter: diagonal of the block that reads x_{t-1} as key, x_t as query");
  trajectory.declare("b", "value parameter: diagonal of the block that reads x_t as value");
  trajectory.declare("product", "a b");
  trajectory.declare("leakage", "root sum of squares of all other entries of the full parameters");
}

void ProductFlow::observe(const Eigen::VectorXd& y, Trajectory& trajectory) const {
  std::size_t k = 0;
  for (const char* name : {"loss", "a", "b", "product", "leakage"}) trajectory.append(k++, quantity(name, y));
}

double ProductFlow::quantity(const std::string& name, const Eigen::VectorXd& y) const {
  const double s = product(y);
  if (name == "loss") return loss_.value(s);
  if (name == "a") return pair(s).a;
  if (name == "b") return pair(s).b;
  if (name == "product") return s;
  if (name == "leakage") return 0.0;
  throw std::invalid_argument("no quantity is called '" + name + "'");
}

void ProductFlow::velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const {
  // s' = sqrt(C^2 + 4 s^2) (A - B s); in the chart kappa (A - B s)        theory: eq:product-flow
  rate = mobility_.kappa() * (loss_.linear - loss_.quadratic * product(y));
}

void ProductFlow::error_scale(const Eigen::VectorXd& y, double absolute, double relative,
                              Eigen::VectorXd& scale) const {
  mobility_.error_scale(one(product(y)), absolute, relative, scale);
}

void ProductFlow::jacobian(const Eigen::VectorXd& y, Eigen::MatrixXd& derivative) const {
  Eigen::VectorXd slope(1);
  mobility_.slope(one(product(y)), slope);
  derivative = Eigen::MatrixXd::Constant(1, 1, -mobility_.kappa()(0) * loss_.quadratic * slope(0));
}

std::string ProductFlow::component(Eigen::Index /*i*/) const { return "product"; }

}  // namespace iclflow
