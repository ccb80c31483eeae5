#include "progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace iclflow::cli {

namespace {

constexpr int bar_width = 30;

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::min(seconds, 3.0e6));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ProgressBar::ProgressBar(bool wanted) : terminal_(wanted && ::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(const std::string& label, double fraction, double time, const char* unit) {
  if (!terminal_) return;
  const auto now = Clock::now();
  if (label != label_) {
    label_ = label;
    label_start_ = now;
    first_fraction_ = fraction;
    first_time_ = time;
  } else if (now - last_ < std::chrono::milliseconds(100)) {
    return;
  }
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - label_start_).count();
  const double done = fraction - first_fraction_;
  std::string rest;
  if (elapsed > 0.5 && done > 0.0) {
    if (time > first_time_) rest = fmt::format("  {:.3g} {}/s", (time - first_time_) / elapsed, unit);
    rest += fmt::format("  {} left", clock_text((1.0 - fraction) * elapsed / done));
  }
  const auto filled = static_cast<std::size_t>(std::lround(std::clamp(fraction, 0.0, 1.0) * bar_width));
  const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
  std::cerr << fmt::format("\r\x1b[K{} [{}] {:3.0f} %{}", label, bar, 100.0 * fraction, rest) << std::flush;
  visible_ = true;
}

void ProgressBar::clear() {
  if (visible_) std::cerr << "\r\x1b[K" << std::flush;
  visible_ = false;
}

}  // namespace iclflow::cli
