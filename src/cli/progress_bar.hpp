#pragma once

#include <chrono>
#include <string>

namespace iclflow::cli {

/// Progress on stderr: a bar with rate and time left, redrawn in place on a terminal; nothing elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(bool wanted);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// fraction of one dynamics (all its seeds), time on the flow's clock of the current seed.
  /// The rate is told in `unit`s of `time` a second.
  void show(const std::string& label, double fraction, double time, const char* unit = "time units");
  void clear();  ///< takes the bar away so that a line can be printed

 private:
  using Clock = std::chrono::steady_clock;

  bool terminal_;
  bool visible_ = false;
  std::string label_;
  Clock::time_point label_start_{};
  Clock::time_point last_{};
  double first_fraction_ = 0.0;
  double first_time_ = 0.0;
};

}  // namespace iclflow::cli
