#include "iclflow/analysis/escape.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

#include "iclflow/analysis/straight_line.hpp"

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
  std::vector<double> logarithm;
  for (std::size_t k = begin; k < end; ++k) logarithm.push_back(std::log(-values[k]));
  const StraightLine line = fit_straight_line(times.subspan(begin, count), logarithm);
  const double before = logarithm.back();
  const double fraction = (std::log(high) - before) / (std::log(-values[end]) - before);
  return Escape{line.slope, times[end - 1] + fraction * (times[end] - times[end - 1])};
}

}  // namespace iclflow
