#include "iclflow/spectral/mobility.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

namespace iclflow {

Mobility::Mobility(Eigen::Index size)
    : chart_(static_cast<std::size_t>(size), Chart::identity),
      kappa_(Eigen::VectorXd::Ones(size)),
      spread_(Eigen::VectorXd::Zero(size)),
      sign_(Eigen::VectorXd::Zero(size)) {}

Mobility Mobility::merged(Eigen::Index size) { return Mobility(size); }

Mobility Mobility::split(const Eigen::VectorXd& x, const Eigen::VectorXd& imbalance, const Eigen::VectorXd& factor) {
  Mobility result(x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    const double spread = factor(j) * std::abs(imbalance(j));
    // An imbalance so far below the product that their ratio overflows is no imbalance in double precision.
    const bool balanced = spread == 0.0 || !std::isfinite(2.0 * x(j) / spread);
    Chart& chart = result.chart_[static_cast<std::size_t>(j)];
    if (!balanced) {
      // x = (s|C|/2) sinh(2 y): y' = -s d ell/d x                         theory: eq:chart-arsinh
      chart = Chart::arsinh;
      result.spread_(j) = spread;
      result.kappa_(j) = factor(j);
    } else if (x(j) != 0.0) {
      // y = log|x|: y' = -2 s sign(x) d ell/d x                           theory: eq:chart-logarithm
      chart = Chart::logarithm;
      result.sign_(j) = std::copysign(1.0, x(j));
      result.kappa_(j) = 2.0 * factor(j) * result.sign_(j);
    } else {
      chart = Chart::frozen;
      result.kappa_(j) = 0.0;
    }
  }
  return result;
}

double Mobility::mobility(Eigen::Index j, double x) const {
  switch (chart(j)) {
    case Chart::identity:
      return 1.0;
    case Chart::frozen:
      return 0.0;
    case Chart::logarithm:
    case Chart::arsinh:
      break;
  }
  // m(x) = s sqrt(s^2 C^2 + 4 x^2); |kappa| is s or, balanced, 2 s        theory: eq:mobility
  return chart(j) == Chart::logarithm ? std::abs(kappa_(j) * x) : kappa_(j) * std::hypot(spread_(j), 2.0 * x);
}

void Mobility::to_chart(const Eigen::VectorXd& x, Eigen::VectorXd& y) const {
  y.resize(x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    switch (chart(j)) {
      case Chart::identity:
        y(j) = x(j);
        break;
      case Chart::logarithm:
        y(j) = std::log(std::abs(x(j)));
        break;
      case Chart::arsinh:
        y(j) = 0.5 * std::asinh(2.0 * x(j) / spread_(j));
        break;
      case Chart::frozen:
        y(j) = 0.0;
        break;
    }
  }
}

void Mobility::from_chart(const Eigen::VectorXd& y, Eigen::VectorXd& x) const {
  x.resize(y.size());
  for (Eigen::Index j = 0; j < y.size(); ++j) {
    switch (chart(j)) {
      case Chart::identity:
        x(j) = y(j);
        break;
      case Chart::logarithm:
        x(j) = sign_(j) * std::exp(y(j));
        break;
      case Chart::arsinh:
        x(j) = 0.5 * spread_(j) * std::sinh(2.0 * y(j));
        break;
      case Chart::frozen:
        x(j) = 0.0;
        break;
    }
  }
}

void Mobility::slope(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const {
  slope.resize(x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    switch (chart(j)) {
      case Chart::identity:
        slope(j) = 1.0;
        break;
      case Chart::logarithm:
        slope(j) = x(j);
        break;
      case Chart::arsinh:
        slope(j) = std::hypot(spread_(j), 2.0 * x(j));
        break;
      case Chart::frozen:
        slope(j) = 0.0;
        break;
    }
  }
}

void Mobility::error_scale(const Eigen::VectorXd& x, double absolute, double relative, Eigen::VectorXd& scale) const {
  scale.resize(x.size());
  for (Eigen::Index j = 0; j < x.size(); ++j) {
    switch (chart(j)) {
      case Chart::identity:
        scale(j) = absolute + relative * std::abs(x(j));
        break;
      case Chart::logarithm:
        // An underflown product allows any error of its logarithm; absolute = 0 must not turn that into 0/0.
        scale(j) = relative + (absolute > 0.0 ? absolute / std::abs(x(j)) : 0.0);
        break;
      case Chart::arsinh:
        scale(j) = 0.5 * relative + absolute / std::hypot(spread_(j), 2.0 * x(j));
        break;
      case Chart::frozen:
        scale(j) = std::numeric_limits<double>::infinity();
        break;
    }
  }
}

}  // namespace iclflow
