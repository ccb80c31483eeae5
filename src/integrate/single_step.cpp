#include "single_step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "step_kernels.hpp"

namespace iclflow {

Eigen::Index first_non_finite(const Eigen::VectorXd& y) {
  // the sum is quick to look at; it may also overflow, then no entry is found
  if (std::isfinite(entry_sum(y))) return -1;
  for (Eigen::Index i = 0; i < y.size(); ++i) {
    if (!std::isfinite(y[i])) return i;
  }
  return -1;
}

void SingleStep::velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) {
  ++evaluations_;
  rate.resize(y.size());
  system_.velocity(y, rate);
  if (culprit_ < 0) culprit_ = first_non_finite(rate);
}

void SingleStep::scale(const Eigen::VectorXd& y, Eigen::VectorXd& result) const {
  system_.error_scale(y, options_.absolute_tolerance, options_.relative_tolerance, result);
  result = result.cwiseMax(std::numeric_limits<double>::min()).cwiseMin(1e300);
}

Attempt SingleStep::attempt(const Point& from, double dt, Point& to) {
  Attempt verdict;
  verdict.finite = false;
  culprit_ = -1;
  try {
    bool rate_known = false;
    to.state.resize(from.state.size());
    verdict = trial(from, dt, to, rate_known);
    // Odeint takes a NaN for a success: its error test is false for a NaN. Hence the look at every entry.
    Eigen::Index bad = first_non_finite(to.state);
    const bool judged = bad < 0 && verdict.finite;  // the error estimate may overflow where the state does not
    if (judged && !verdict.accepted) return verdict;
    if (judged) {
      if (!rate_known) velocity(to.state, to.rate);
      bad = first_non_finite(to.rate);
    }
    if (bad >= 0) {
      verdict.finite = false;
      verdict.worst = bad;
    }
    // a linear solve spreads one bad entry over all: name the one that the velocity brought in
    if (!verdict.finite && culprit_ >= 0) verdict.worst = culprit_;
  } catch (const std::domain_error& error) {
    verdict.reason = error.what();
  }
  if (!verdict.finite) {
    verdict.accepted = false;
    verdict.proposal = 0.5 * dt;
    restart();
  }
  return verdict;
}

namespace {

/// Where |error / scale| is largest.
Eigen::Index worst_of(const Eigen::VectorXd& error, const Eigen::VectorXd& scale, double largest) {
  for (Eigen::Index i = 0; i < error.size(); ++i) {
    if (std::abs(error[i] / scale[i]) >= largest) return i;
  }
  return 0;
}

}  // namespace

Attempt SingleStep::judge(const Point& from, double dt, const Eigen::VectorXd& error) {
  scale(from.state, scale_);
  const Norms norms = scaled_norms(error, scale_);
  Attempt verdict;
  if (!std::isfinite(norms.largest)) {
    verdict.finite = false;
    verdict.worst = std::max(Eigen::Index{0}, first_non_finite(error.cwiseQuotient(scale_)));
    return verdict;
  }
  const double norm = mean_square_ && std::isfinite(norms.mean_square) ? std::sqrt(norms.mean_square) : norms.largest;
  verdict.accepted = norm <= 1.0;
  const double factor = norm > 0.0 ? 0.9 * std::pow(norm, -1.0 / error_power()) : 5.0;
  verdict.proposal = dt * std::clamp(factor, 0.2, 5.0);
  verdict.accurate = dt * factor;
  if (!verdict.accepted) verdict.worst = worst_of(error, scale_, norms.largest);
  return verdict;
}

double SingleStep::first_step(const Point& start) {
  if (start.state.size() == 0) return 1.0;
  scale(start.state, scale_);
  const auto norm = [this](const Eigen::VectorXd& v) { return (v.array() / scale_.array()).abs().maxCoeff(); };
  const double size = norm(start.state);
  const double speed = norm(start.rate);
  const double guess = size < 1e-5 || speed < 1e-5 ? 1e-6 : 0.01 * size / speed;
  Eigen::VectorXd rate;
  try {
    velocity(start.state + guess * start.rate, rate);
  } catch (const std::domain_error&) {
    return 1e-3 * guess;
  }
  const double change = norm(rate - start.rate) / guess;
  if (!std::isfinite(change)) return 1e-3 * guess;
  const double largest = std::max(speed, change);
  const double second = largest <= 1e-15 ? std::max(1e-6, guess * 1e-3) : std::pow(0.01 / largest, 1.0 / error_power());
  return std::min(100.0 * guess, second);
}

}  // namespace iclflow
