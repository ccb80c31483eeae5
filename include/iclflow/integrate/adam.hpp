#pragma once

#include "iclflow/integrate/descent.hpp"

namespace iclflow {

/// Learning rate over the steps: linear warm-up from 0, then half a cosine down to `final` (or constant).
struct LearningRate {
  double peak = 3e-4;
  std::uint64_t warm_up = 0;    ///< steps; step k of them has the rate peak * k / warm_up
  std::uint64_t decay_end = 0;  ///< step at which the cosine has come down to `final`; 0: constant after the warm-up
  double final = 0.0;

  [[nodiscard]] double at(std::uint64_t step) const;
};

struct AdamOptions {
  LearningRate rate;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;      ///< beside the root of the second moment: decides how long a plateau of tiny gradients is
  double weight_decay = 0.0;  ///< decoupled, times the learning rate
  double gradient_clip = 0.0;  ///< every entry is clipped to [-gradient_clip, gradient_clip]; 0: not
};

/// AdamW (Kingma, Ba 2015; decoupled weight decay: Loshchilov, Hutter 2019). One step takes unit time.
class AdamRule final : public DescentRule {
 public:
  explicit AdamRule(const AdamOptions& options) : options_(options) {}
  [[nodiscard]] double clock() const override { return 1.0; }
  [[nodiscard]] double rate(std::uint64_t step) const override { return options_.rate.at(step); }
  void advance(std::uint64_t step, const Eigen::VectorXd& theta, const Eigen::VectorXd& gradient,
               Eigen::VectorXd& next) override;
  /// First moments, then second ones.
  [[nodiscard]] std::vector<double> memory() const override;
  void remember(const std::vector<double>& memory) override;

 private:
  AdamOptions options_;
  Eigen::ArrayXd first_;
  Eigen::ArrayXd second_;
};

}  // namespace iclflow
