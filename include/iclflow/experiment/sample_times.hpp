#pragma once

#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"

namespace iclflow {

/// [time]: when trajectories are sampled, in units of the clock d theta/dt = -grad ell.
struct SampleTimes {
  double final = 0.0;
  int samples = 0;  ///< after t = 0, so a trajectory has samples + 1 rows
  bool logarithmic = false;
  double first = 0.0;  ///< logarithmic: the first sample after 0; default final * 1e-4

  /// 0, ..., final; the end is exact.
  [[nodiscard]] std::vector<double> times() const;
  void resolve(TomlText& text) const;
};
inline constexpr int largest_sample_count = 1'000'000;

/// Throws InputError.
[[nodiscard]] SampleTimes read_sample_times(const Section& section);

}  // namespace iclflow
