#include "sampled_contexts.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

constexpr std::size_t largest_kept = 8'000'000;  // numbers, 64 MB

/// Distribution function of the standard normal.
double uniform(double normal) { return 0.5 * std::erfc(-normal / std::sqrt(2.0)); }

}  // namespace

SampledLoss::Contexts::Contexts(const Problem& problem, const Coordinates& coordinates, const SampledOptions& options)
    : seed_(options.seed),
      contexts_(options.contexts),
      size_(static_cast<std::size_t>(coordinates.size())),
      stride_(padded(static_cast<std::size_t>(problem.context_length))),
      chi_(static_cast<std::size_t>(contexts_) * size_) {
  for (int group = 0; group < groups; ++group) {
    for (std::size_t k = 0; k < size_; ++k) draw_lengths(group, k, coordinates.multiplicity[k]);
  }
  const std::size_t each = size_ * stride_;
  if (static_cast<std::size_t>(contexts_) > largest_kept / each) return;
  kept_ = aligned_zeros<double>(static_cast<std::size_t>(contexts_) * each);
  for (int c = 0; c < contexts_; ++c) draw_coordinates(c, kept_.get() + static_cast<std::size_t>(c) * each);
}

/// One of each n-quantile of the chi distribution with w degrees of freedom, in random order:
///   chi = F_w^{-1}((rank + uniform) / n).                                 theory: eq:latin-hypercube
void SampledLoss::Contexts::draw_lengths(int group, std::size_t coordinate, double multiplicity) {
  const int first = begin(group);
  const auto n = static_cast<std::size_t>(begin(group + 1) - first);
  std::vector<double> normal(whole_groups<double>(2 * n));
  fill_normals({seed_, Stream::closure, static_cast<std::uint32_t>(coordinate) + 1, static_cast<std::uint32_t>(group)},
               0, normal.data(), normal.size());
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return normal[a] < normal[b]; });
  const double largest = 1.0 - std::numeric_limits<double>::epsilon();
  for (std::size_t rank = 0; rank < n; ++rank) {
    const double level =
        std::min((static_cast<double>(rank) + uniform(normal[n + rank])) / static_cast<double>(n), largest);
    chi_[(static_cast<std::size_t>(first) + order[rank]) * size_ + coordinate] =
        std::sqrt(2.0 * boost::math::gamma_p_inv(0.5 * multiplicity, level));
  }
}

void SampledLoss::Contexts::draw_coordinates(int context, double* out) const {
  fill_normals({seed_, Stream::closure, 0, static_cast<std::uint32_t>(context)}, 0, out, size_ * stride_);
}

void SampledLoss::Contexts::coordinates(int context, double* out) const {
  const std::size_t each = size_ * stride_;
  if (kept_) {
    std::copy_n(kept_.get() + static_cast<std::size_t>(context) * each, each, out);
  } else {
    draw_coordinates(context, out);
  }
}

}  // namespace iclflow
