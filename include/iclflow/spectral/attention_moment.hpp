#pragma once

namespace iclflow {

/// E |p|^2 of the softmax p of L independent scores of variance a = |W q|^2, exact at every L and a, by quadrature:
///   L int_0^inf t A(t) B(t)^(L-1) dt,   A = E e^{2s - t e^s},  B = E e^{-t e^s},  s ~ N(0, a).
/// The weight of the noise that one head reads from a context; relative error below 1e-8 for a <= 40, L <= 1e7.
/// Throws std::invalid_argument for L < 1 or a not in [0, 40]. Source: theory/03-population-loss.md.
[[nodiscard]] double attention_moment(double variance, double length);

/// What the large-context closure takes for it, e^a / L: the exponential regime.
[[nodiscard]] double exponential_moment(double variance, double length);

/// Its limit for L -> inf at a / log L fixed: 1 - sqrt(2 log L / a) where a > 2 log L, else 0: attention saturates on
/// the largest score. Derrida 1981 (random energy model).
[[nodiscard]] double saturated_moment(double variance, double length);

}  // namespace iclflow
