#include "iclflow/mesa/unitary_sequences.hpp"

#include <cmath>

namespace iclflow {

namespace {

/// E |z|^2k of one coordinate or plane, k = 1, 2, 3, and how often it is not zero.
struct RadiusMoments {
  double two;
  double four;
  double six;
  double present = 1.0;
};

RadiusMoments coordinate_moments(FirstState law, double c, int count) {
  const double square = c * c;
  switch (law) {
    case FirstState::normal:
      return {square, 3.0 * square * square, 15.0 * square * square * square};
    case FirstState::uniform:
      return {square / 3.0, square * square / 5.0, square * square * square / 7.0};
    case FirstState::signs:
      return {square, square * square, square * square * square};
    case FirstState::sparse:
      break;
  }
  const double present = 1.0 / count;
  return {present * square, present * square * square, present * square * square * square, present};
}

RadiusMoments plane_moments(FirstState law, double c, int count) {
  if (law == FirstState::sparse) return coordinate_moments(law, c, count);
  // of the sum of two independent squares
  const RadiusMoments one = coordinate_moments(law, c, count);
  return {2.0 * one.two, 2.0 * one.four + 2.0 * one.two * one.two, 2.0 * one.six + 6.0 * one.four * one.two};
}

/// sum_{t=2}^{T-1} 1/(t - 1)
double harmonic_sum(const UnitarySequences& sequences) {
  double sum = 0.0;
  for (int n = sequences.predictions(); n >= 1; --n) sum += 1.0 / n;
  return sum;
}

}  // namespace

StateMoments state_moments(const UnitarySequences& sequences) {
  const int count = sequences.phases();
  const RadiusMoments one = sequences.kind == TransitionKind::unitary
                                ? coordinate_moments(sequences.initial, sequences.initial_scale, count)
                                : plane_moments(sequences.initial, sequences.initial_scale, count);
  // kappa1 = E |z_j|^4, kappa2 = E |z_j|^6, kappa3 = sum_{r != j} E |z_j|^2 |z_r|^4   theory: eq:state-moments
  const double others = sequences.initial == FirstState::sparse ? 0.0 : count - 1.0;
  return {one.two, one.two / one.present, one.four, one.six, others * one.two * one.four};
}

ProductLoss product_loss(const UnitarySequences& sequences) {
  const StateMoments m = state_moments(sequences);
  const double n = sequences.predictions();
  const double harmonic = harmonic_sum(sequences);
  ProductLoss loss;
  loss.copies = sequences.dimension;
  if (sequences.kind == TransitionKind::unitary) {
    // A = (T - 2) kappa1, B = (T - 2) kappa2 + kappa3 sum 1/(t - 1)       theory: eq:unitary-product-loss
    loss.constant = 0.5 * n * m.second;
    loss.linear = n * m.kappa1;
    loss.quadratic = n * m.kappa2 + m.kappa3 * harmonic;
  } else {
    // A = N k1/4, B = N (k2 (1 + h)/8 + k3 h/4), N h = sum 1/(t - 1)      theory: eq:rotation-product-loss
    loss.constant = 0.25 * n * m.second;
    loss.linear = 0.25 * n * m.kappa1;
    loss.quadratic = 0.125 * m.kappa2 * (n + harmonic) + 0.25 * m.kappa3 * harmonic;
  }
  return loss;
}

double mean_ratio(const UnitarySequences& sequences, double product) {
  // yhat_t -> s |z|^2 x_{t+1} (unitary), s |z|^2 x_{t+1} / 2 (rotation)   theory: eq:mean-ratio
  const double part = sequences.kind == TransitionKind::unitary ? 1.0 : 0.5;
  return part * product * state_moments(sequences).second_alone;
}

}  // namespace iclflow
