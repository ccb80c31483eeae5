#pragma once

#include <optional>

#include "iclflow/problem/initial.hpp"

namespace iclflow {

/// Which head emerges first on which task, read off the start alone (H x I, larger is sooner, in units of mu; 0: this
/// head cannot serve this task). To leading order in small starts and without damping all heads of one task share the
/// clock d tau = r dt, and head h alone would reach infinity at a time inversely proportional to
///   split, balanced: the logarithmic mean (mu - Omega) / ln(mu / Omega) of |mu| and Omega = d_i |omega| / s_w, if
///                    mu omega > 0, else 0: signs are conserved and a negative product decays;
///   merged:          |mu + sqrt(d_i) omega| / 2, the growing mode; all heads grow alike and keep their shares.
/// omega is the mean over the block. With equal omega the order is that of mu. Empty for an imbalanced split start.
/// Source: theory/06-phases-allocation.md.
[[nodiscard]] std::optional<Matrix> emergence_order(const Problem& problem, const InitialState& start);

}  // namespace iclflow
