#include "iclflow/experiment/sample_times.hpp"

#include <fmt/format.h>

#include <cmath>

namespace iclflow {

std::vector<double> SampleTimes::times() const {
  std::vector<double> result{0.0};
  for (int k = 1; k < samples; ++k) {
    const double fraction = logarithmic ? static_cast<double>(k - 1) / (samples - 1) : static_cast<double>(k) / samples;
    result.push_back(logarithmic ? first * std::pow(final / first, fraction) : final * fraction);
  }
  result.push_back(final);
  return result;
}

void SampleTimes::resolve(TomlText& text) const {
  text.table("time");
  text.put("final", final);
  text.put("samples", samples);
  text.put("spacing", logarithmic ? "log" : "linear");
  if (logarithmic) text.put("first", first);
}

SampleTimes read_sample_times(const Section& section) {
  SampleTimes time;
  time.final = section.number("final", Sign::positive);
  time.samples = static_cast<int>(section.integer("samples", 1, largest_sample_count));
  time.logarithmic = section.choice("spacing", {{"linear", "log"}}, "linear") == "log";
  if (time.logarithmic) {
    time.first = section.number("first", Sign::positive, time.final * 1e-4);
    if (time.first >= time.final && time.samples > 1) {
      section.fail("first", fmt::format("impossible value ({})", time.first),
                   fmt::format("a number above 0 and below time.final ({})", time.final));
    }
  }
  section.finish();
  const auto times = time.times();
  for (std::size_t k = 1; k < times.size(); ++k) {
    if (times[k] > times[k - 1]) continue;
    section.fail("samples",
                 fmt::format("impossible value ({}): times {} and {} cannot be told apart in double precision",
                             time.samples, k - 1, k),
                 "fewer samples");
  }
  return time;
}

}  // namespace iclflow
