#pragma once

#include <cstddef>
#include <vector>

namespace iclflow {

/// Which matrix the polynomial features are made of: A = M_t + I / lambda over nu.
struct PolynomialFamily {
  double ridge = 0.0;      ///< 1 / lambda
  bool normalised = true;  ///< nu = |A|_F of each t
  double scale = 1.0;      ///< nu otherwise
  int count = 1;           ///< features, degrees 0 .. count - 1
};

/// What the linear baselines know of s_1 .. s_t at the query z_t = (s_t, .., s_{t-k+1}), k states under each other:
/// M_t = sum_{t' < t} z_t' z_t'^T and G_t = sum_{t' <= t} s_t' z_{t'-1}^T, the pair (z_{t-1}, s_t) included
/// (theory: eq:context-moments). Only complete z count.
class ContextMoments {
 public:
  ContextMoments(int dimension, int stacked);
  void clear();
  /// The next state; it is the query from then on.
  void observe(const double* state);

  /// F_k = G P_k(2 A / nu - 1) z / nu for every k, count x n (theory: eq:polynomial-features).
  void features(const PolynomialFamily& family, double* out);
  /// G (M + ridge I)^-1 z
  void ridge(double ridge, double* out);
  /// |M|_F
  [[nodiscard]] double norm() const { return norm(0.0); }

 private:
  [[nodiscard]] double norm(double ridge) const;

  std::size_t n_;
  std::size_t size_;           ///< k n
  std::size_t seen_ = 0;       ///< states
  std::vector<double> query_;  ///< z
  std::vector<double> m_;      ///< symmetric
  std::vector<double> g_;      ///< columns of n numbers
  std::vector<double> now_, before_, next_, factor_;
};

}  // namespace iclflow
