#include "iclflow/regression/regimes.hpp"

#include <algorithm>
#include <cmath>

#include "iclflow/attention/score_space_attention.hpp"
#include "iclflow/random/normals.hpp"
#include "iclflow/spectral/attention_moment.hpp"

namespace iclflow {

namespace {

constexpr double largest_variance = 40.0;
constexpr int line_points = 160;
constexpr int sampled_points = 9;
constexpr double sampled_scores = 2e6;  // of each point
constexpr int longest = 100'000;

MomentSeries moment_series(int length, double up_to) {
  MomentSeries series;
  series.context_length = length;
  const auto add = [](Curve& curve, double a, double value) {
    curve.times.push_back(a);
    curve.values.push_back(value);
  };
  for (int k = 0; k <= line_points; ++k) {
    const double a = up_to * k / line_points;
    add(series.exact, a, attention_moment(a, length));
    const double exponential = exponential_moment(a, length);
    if (exponential < 1.0) add(series.exponential, a, exponential);
    const double saturated = saturated_moment(a, length);
    if (saturated > 0.0) add(series.saturated, a, saturated);
  }
  const int contexts = std::max(200, static_cast<int>(sampled_scores / length));
  for (int k = 1; k <= sampled_points; ++k) {
    const double a = up_to * (k - 0.5) / sampled_points;
    const SampledMoment point = sample_moment(a, length, contexts, static_cast<std::uint64_t>(k));
    add(series.sampled, a, point.value);
    series.sampled.standard_error.push_back(point.standard_error);
  }
  return series;
}

}  // namespace

SampledMoment sample_moment(double variance, int length, int contexts, std::uint64_t seed) {
  ScoreSpaceAttention attention(1, 1, static_cast<std::size_t>(length));
  *attention.mixing(0) = std::sqrt(variance);
  double sum = 0.0;
  double squares = 0.0;
  for (int c = 0; c < contexts; ++c) {
    fill_normals({seed, Stream::closure, static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(c)}, 0,
                 attention.coordinates(), attention.stride());
    attention.score();
    attention.attend();
    const double overlap = *attention.overlap(0);
    sum += overlap;
    squares += overlap * overlap;
  }
  const double mean = sum / contexts;
  return {mean, std::sqrt(std::max(0.0, squares / contexts - mean * mean) / std::max(1, contexts - 1))};
}

RegimesFigure regimes_figure(const Problem& problem, const std::string& title) {
  std::vector<int> lengths;
  for (const double factor : {0.0625, 0.25, 1.0, 4.0, 16.0}) {
    const double length = std::clamp(std::round(factor * problem.context_length), 2.0, static_cast<double>(longest));
    if (lengths.empty() || length > lengths.back()) lengths.push_back(static_cast<int>(length));
  }
  const double next = lengths.size() > 1 ? lengths[lengths.size() - 2] : lengths.back();
  const double up_to = std::min(largest_variance, std::ceil(4.0 * std::log(next)));
  RegimesFigure figure;
  figure.title = title;
  for (const int length : lengths) figure.series.push_back(moment_series(length, up_to));
  return figure;
}

}  // namespace iclflow
