#include "rock4.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "step_kernels.hpp"

namespace iclflow {
namespace {

constexpr int radius_lifetime = 5;  ///< accepted steps between two estimates of the spectral radius

}  // namespace

double Rock4::cost(double scaled_step) {
  const Rock4Coefficients& longest = rock4_coefficients.back();
  if (scaled_step > longest.interval) return longest.stages * scaled_step / longest.interval;
  for (const Rock4Coefficients& method : rock4_coefficients) {
    if (scaled_step <= method.interval) return method.stages;
  }
  return longest.stages;
}

double Rock4::update_radius(const Point& at) {
  age_ = 0;
  return radius_.update(at, [this](const Eigen::VectorXd& y, Eigen::VectorXd& rate) { velocity(y, rate); });
}

void Rock4::remember(std::vector<double>& memory) const {
  memory.push_back(static_cast<double>(age_));
  radius_.save(memory);
}

void Rock4::recall(const std::vector<double>& memory) {
  if (memory.size() < 2) return;
  age_ = static_cast<int>(memory.front());
  radius_.recall(memory, 1);
}

std::vector<Rock4::Recurrence> Rock4::recurrence(const Rock4Coefficients& method) {
  // w(z) = 1 + z sum b + z^2 sum b c + z^3 sum b a c + z^4 sum b a a c, the finishing stages' own polynomial
  //                                                                       theory: eq:finishing-polynomial
  const auto& [a21, a31, a32, a41, a42, a43, b1, b2, b3, b4, d1, d2, d3, d4, d5] = method.finishing;
  const double c3 = a31 + a32;
  const double w1 = b1 + b2 + b3 + b4;
  const double w2 = b2 * a21 + b3 * c3 + b4 * (a41 + a42 + a43);
  const double w3 = b3 * a32 * a21 + b4 * (a42 * a21 + a43 * c3);
  const double w4 = b4 * a43 * a32 * a21;
  // Monic polynomials orthogonal to w(z)^2 / sqrt(1 - x^2), z = l (x - 1) / 2, on Gauss-Chebyshev nodes; divided by
  // their values at x = 1                                                 theory: eq:stabilised-recurrence
  const int count = method.stages - 4;
  const Eigen::ArrayXd angle =
      (Eigen::ArrayXd::LinSpaced(count + 8, 0.0, count + 7.0) + 0.5) * std::numbers::pi / (count + 8);
  const Eigen::ArrayXd x = angle.cos();
  const Eigen::ArrayXd z = 0.5 * method.interval * (x - 1.0);
  const Eigen::ArrayXd weight = (1.0 + z * (w1 + z * (w2 + z * (w3 + z * w4)))).square();
  Eigen::ArrayXd before = Eigen::ArrayXd::Zero(count + 8);
  Eigen::ArrayXd p = Eigen::ArrayXd::Ones(count + 8);
  std::vector<Recurrence> steps;
  double norm = 0.0;
  double ratio = 0.0;  // of the values at 1 of the last two polynomials
  for (int j = 0; j < count; ++j) {
    const double last_norm = norm;
    norm = (weight * p.square()).sum();
    const double alpha = (weight * x * p.square()).sum() / norm;
    const double beta = j > 0 ? norm / last_norm : 0.0;
    const double value = (1.0 - alpha) - beta * ratio;
    steps.push_back({2.0 / (method.interval * value), (1.0 - alpha) / value, -beta * ratio / value});
    ratio = 1.0 / value;
    const Eigen::ArrayXd next = (x - alpha) * p - beta * before;
    before = p;
    p = next;
  }
  return steps;
}

void Rock4::choose(double scaled_step) {
  const auto fits = [&](const Rock4Coefficients& method) { return scaled_step <= method.interval; };
  const auto* const found = std::find_if(rock4_coefficients.begin(), rock4_coefficients.end(), fits);
  chosen_ = static_cast<std::size_t>(found - rock4_coefficients.begin());
  if (found != rock4_coefficients.end() && recurrences_[chosen_].empty()) recurrences_[chosen_] = recurrence(*found);
}

void Rock4::advance(const Point& from, double dt) {
  const std::vector<Recurrence>& steps = recurrences_[chosen_];
  last_ = from.state;
  combine({{1.0, from.state}, {dt * steps.front().mu, from.rate}}, now_);
  for (std::size_t j = 1; j < steps.size(); ++j) {
    velocity(now_, rate_);
    combine({{dt * steps[j].mu, rate_}, {steps[j].nu, now_}, {steps[j].kappa, last_}}, next_);
    last_.swap(now_);
    now_.swap(next_);
  }
}

void Rock4::finish(double dt, Point& to) {
  const auto& [a21, a31, a32, a41, a42, a43, b1, b2, b3, b4, d1, d2, d3, d4, d5] =
      rock4_coefficients[chosen_].finishing;
  velocity(now_, g1_);
  combine({{1.0, now_}, {dt * a21, g1_}}, next_);
  velocity(next_, g2_);
  combine({{1.0, now_}, {dt * a31, g1_}, {dt * a32, g2_}}, next_);
  velocity(next_, g3_);
  combine({{1.0, now_}, {dt * a41, g1_}, {dt * a42, g2_}, {dt * a43, g3_}}, next_);
  velocity(next_, g4_);
  combine({{1.0, now_}, {dt * b1, g1_}, {dt * b2, g2_}, {dt * b3, g3_}, {dt * b4, g4_}}, to.state);
  velocity(to.state, to.rate);
  combine({{dt * d1, g1_}, {dt * d2, g2_}, {dt * d3, g3_}, {dt * d4, g4_}, {dt * d5, to.rate}}, error_);
}

Attempt Rock4::trial(const Point& from, double dt, Point& to, bool& rate_known) {
  if (!radius_.known() || age_ >= radius_lifetime) update_radius(from);
  const double longest = 0.99 * rock4_coefficients.back().interval / radius();
  choose(dt * radius());
  if (chosen_ == rock4_coefficients.size()) {
    Attempt too_long;
    too_long.proposal = longest;
    to.state = from.state;
    return too_long;
  }
  advance(from, dt);
  finish(dt, to);
  rate_known = true;
  Attempt verdict = judge(from, dt, error_);
  age_ = verdict.accepted ? age_ + 1 : radius_lifetime;
  verdict.proposal = std::min(verdict.proposal, longest);
  return verdict;
}

}  // namespace iclflow
