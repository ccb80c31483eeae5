#include "iclflow/analysis/escape.hpp"

#include <cmath>
#include <cstddef>

namespace iclflow {

std::optional<Escape> find_escape(std::span<const double> times, std::span<const double> values, double low,
                                  double high) {
  std::size_t end = 0;
  while (end < values.size() && -values[end] < high) ++end;
  if (end == values.size()) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && -values[begin - 1] >= low) --begin;
  const std::size_t count = end - begin;
  if (count < 3) return std::nullopt;
  double mean_time = 0.0;
  double mean_log = 0.0;
  for (std::size_t k = begin; k < end; ++k) {
    mean_time += times[k] / static_cast<double>(count);
    mean_log += std::log(-values[k]) / static_cast<double>(count);
  }
  double covariance = 0.0;
  double variance = 0.0;
  for (std::size_t k = begin; k < end; ++k) {
    covariance += (times[k] - mean_time) * (std::log(-values[k]) - mean_log);
    variance += (times[k] - mean_time) * (times[k] - mean_time);
  }
  const double before = std::log(-values[end - 1]);
  const double fraction = (std::log(high) - before) / (std::log(-values[end]) - before);
  return Escape{covariance / variance, times[end - 1] + fraction * (times[end] - times[end - 1])};
}

}  // namespace iclflow
