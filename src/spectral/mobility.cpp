#include "iclflow/spectral/mobility.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "correlation_kernels.hpp"

namespace iclflow {

Mobility::Mobility(Eigen::Index size)
    : chart_(static_cast<std::size_t>(size), Chart::identity),
      kappa_(Eigen::VectorXd::Ones(size)),
      spread_(Eigen::VectorXd::Zero(size)),
      sign_(Eigen::VectorXd::Zero(size)) {}

Mobility Mobility::merged(Eigen::Index size) {
  Mobility result(size);
  result.find_runs();
  return result;
}

void Mobility::find_runs() {
  runs_.clear();
  for (Eigen::Index j = 0; j < size(); ++j) {
    if (runs_.empty() || runs_.back().chart != chart(j)) runs_.push_back({chart(j), j, 0});
    ++runs_.back().size;
  }
  trivial_ = std::all_of(chart_.begin(), chart_.end(), [](Chart c) { return c == Chart::identity; });
  half_spread_ = 0.5 * spread_;
}

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
  result.find_runs();
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
  for (const Run& run : runs_) {
    const auto count = static_cast<std::size_t>(run.size);
    switch (run.chart) {
      case Chart::identity:
        x.segment(run.begin, run.size) = y.segment(run.begin, run.size);
        break;
      case Chart::logarithm:
        scaled_exponentials(y.data() + run.begin, sign_.data() + run.begin, count, x.data() + run.begin);
        break;
      case Chart::arsinh:
        scaled_double_sinh(y.data() + run.begin, half_spread_.data() + run.begin, count, x.data() + run.begin);
        break;
      case Chart::frozen:
        x.segment(run.begin, run.size).setZero();
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
  for (const Run& run : runs_) {
    const auto values = x.segment(run.begin, run.size).array();
    auto result = scale.segment(run.begin, run.size).array();
    switch (run.chart) {
      case Chart::identity:
        result = absolute + relative * values.abs();
        break;
      case Chart::logarithm:
        // An underflown product allows any error of its logarithm; absolute = 0 must not turn that into 0/0.
        result.setConstant(relative);
        if (absolute > 0.0) result += absolute / values.abs();
        break;
      case Chart::arsinh:
        result = 0.5 * relative +
                 absolute / (spread_.segment(run.begin, run.size).array().square() + 4.0 * values.square()).sqrt();
        break;
      case Chart::frozen:
        result.setConstant(std::numeric_limits<double>::infinity());
        break;
    }
  }
}

}  // namespace iclflow
