#include "iclflow/integrate/adam.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>

namespace iclflow {

double LearningRate::at(std::uint64_t step) const {
  if (step < warm_up) return peak * static_cast<double>(step) / static_cast<double>(warm_up);
  if (decay_end == 0) return peak;
  if (step >= decay_end) return final;
  const double share = static_cast<double>(step - warm_up) / static_cast<double>(decay_end - warm_up);
  return final + 0.5 * (peak - final) * (1.0 + std::cos(std::numbers::pi * share));
}

void AdamRule::advance(std::uint64_t step, const Eigen::VectorXd& theta, const Eigen::VectorXd& gradient,
                       Eigen::VectorXd& next) {
  if (first_.size() == 0) {
    first_ = Eigen::ArrayXd::Zero(theta.size());
    second_ = Eigen::ArrayXd::Zero(theta.size());
  }
  if (first_.size() != theta.size()) throw std::invalid_argument("AdamW remembers another number of parameters");
  Eigen::ArrayXd slope = gradient.array();
  // Eigen's min and max would turn what is not a number into the limit, and hide a failure.
  if (options_.gradient_clip > 0.0 && slope.allFinite()) {
    slope = slope.max(-options_.gradient_clip).min(options_.gradient_clip);
  }
  first_ += (1.0 - options_.beta1) * (slope - first_);
  second_ += (1.0 - options_.beta2) * (slope.square() - second_);
  const double count = static_cast<double>(step) + 1.0;
  const double of_first = 1.0 / (1.0 - std::pow(options_.beta1, count));
  const double of_second = 1.0 / (1.0 - std::pow(options_.beta2, count));
  const double rate = options_.rate.at(step);
  // theta <- theta - rate (m / (sqrt(v) + eps) + decay theta) (theory: eq:adamw)
  next = theta - rate * (of_first * first_ / ((of_second * second_).sqrt() + options_.epsilon) +
                         options_.weight_decay * theta.array())
                            .matrix();
}

std::vector<double> AdamRule::memory() const {
  std::vector<double> values(first_.data(), first_.data() + first_.size());
  values.insert(values.end(), second_.data(), second_.data() + second_.size());
  return values;
}

void AdamRule::remember(const std::vector<double>& memory) {
  if (memory.size() % 2 != 0) throw std::invalid_argument("the checkpoint's memory is not that of AdamW");
  const auto half = static_cast<Eigen::Index>(memory.size() / 2);
  first_ = Eigen::Map<const Eigen::ArrayXd>(memory.data(), half);
  second_ = Eigen::Map<const Eigen::ArrayXd>(memory.data() + half, half);
}

}  // namespace iclflow
