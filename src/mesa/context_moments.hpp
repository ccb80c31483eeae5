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

/// What the linear baselines know of s_1 .. s_t at the query s_t: M_t = sum_{t' < t} s_t' s_t'^T and
/// G_t = sum_{t' <= t} s_t' s_{t'-1}^T, the pair (s_{t-1}, s_t) included (theory: eq:context-moments).
class ContextMoments {
 public:
  explicit ContextMoments(int dimension);
  void clear();
  /// previous = s_{t-1}, state = s_t.
  void add(const double* previous, const double* state);

  /// F_k = G P_k(2 A / nu - 1) s / nu for every k, count x n (theory: eq:polynomial-features).
  void features(const PolynomialFamily& family, const double* state, double* out);
  /// G (M + ridge I)^-1 s
  void ridge(double ridge, const double* state, double* out);
  /// |M|_F
  [[nodiscard]] double norm() const { return norm(0.0); }

 private:
  [[nodiscard]] double norm(double ridge) const;

  std::size_t n_;
  std::vector<double> m_;  ///< symmetric
  std::vector<double> g_;  ///< columns
  std::vector<double> now_, before_, next_, factor_;
};

}  // namespace iclflow
