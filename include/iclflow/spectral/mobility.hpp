#pragma once

#include <Eigen/Core>
#include <vector>

namespace iclflow {

/// Gradient flow of variables x_j that are either parameters themselves or products of two of them.
///
/// A parameter x moves as x' = -g with g = d ell/d x. A product x = s a b of two parameters moves as
/// x' = -m(x) g with m(x) = s sqrt(s^2 C^2 + 4 x^2), C = a^2 - b^2 conserved. The chart y of each variable is chosen
/// so that its velocity is -kappa g with kappa constant; no error of an integrator in y can then change what the exact
/// flow conserves (the sign of a balanced product; C of an imbalanced one):
///   identity   y = x                      kappa = 1
///   logarithm  y = log|x|     (C = 0)     kappa = 2 s sign x, dx/dy = x
///   arsinh     x = (s|C|/2) sinh 2y       kappa = s,          dx/dy = sqrt(s^2 C^2 + 4 x^2)
///   frozen     x = 0 and C = 0: stays     kappa = 0
/// Knows nothing of attention. Source: theory/04-flow.md.
class Mobility {
 public:
  enum class Chart { identity, logarithm, arsinh, frozen };

  /// All `size` variables are parameters themselves.
  static Mobility merged(Eigen::Index size);
  /// Products that start at x with conserved imbalance C and positive factor s (same sizes).
  static Mobility split(const Eigen::VectorXd& x, const Eigen::VectorXd& imbalance, const Eigen::VectorXd& factor);

  [[nodiscard]] Eigen::Index size() const { return kappa_.size(); }
  [[nodiscard]] Chart chart(Eigen::Index j) const { return chart_[static_cast<std::size_t>(j)]; }
  /// Constant speed of each chart coordinate: y' = -kappa * d ell/d x.
  [[nodiscard]] const Eigen::VectorXd& kappa() const { return kappa_; }
  /// m(x_j), the factor between gradient and velocity of x itself.
  [[nodiscard]] double mobility(Eigen::Index j, double x) const;

  /// All charts are identities: y is x.
  [[nodiscard]] bool trivial() const { return trivial_; }

  void to_chart(const Eigen::VectorXd& x, Eigen::VectorXd& y) const;
  void from_chart(const Eigen::VectorXd& y, Eigen::VectorXd& x) const;
  /// dx/dy, given x.
  void slope(const Eigen::VectorXd& x, Eigen::VectorXd& slope) const;
  /// Allowed local error of y for an error of x of absolute + relative * size of x. A product's size is half its
  /// slope in the arsinh chart, (a^2 + b^2) s / 2, which does not vanish where the product crosses zero.
  /// Infinite for frozen variables.
  void error_scale(const Eigen::VectorXd& x, double absolute, double relative, Eigen::VectorXd& scale) const;

 private:
  explicit Mobility(Eigen::Index size);

  /// Neighbours with one kind of chart.
  struct Run {
    Chart chart;
    Eigen::Index begin;
    Eigen::Index size;
  };
  void find_runs();

  std::vector<Chart> chart_;
  std::vector<Run> runs_;
  bool trivial_ = false;
  Eigen::VectorXd kappa_;
  Eigen::VectorXd spread_;  ///< s |C|
  Eigen::VectorXd sign_;    ///< frozen sign in the logarithm chart
  Eigen::VectorXd half_spread_;
};

}  // namespace iclflow
