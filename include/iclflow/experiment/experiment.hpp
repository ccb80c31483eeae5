#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/check.hpp"
#include "iclflow/experiment/sample_times.hpp"
#include "iclflow/experiment/system.hpp"

namespace iclflow {

/// One key of [expect]: no comparison may exceed the bound.
struct Expectation {
  std::string key;
  double allowed = 0.0;
};

/// A typed, fully resolved description of a run.
struct Experiment {
  std::string title;
  std::string system;
  std::optional<SampleTimes> time;  ///< empty only when nothing moves
  std::vector<Event> events;
  std::vector<Expectation> expectations;
  std::vector<std::string> figures;
  std::optional<Claim> claim;
  std::vector<Check> checks;
  bool theory_only = false;  ///< the simulations were left out: what needs them is not measured, not missed
  std::unique_ptr<Study> study;

  [[nodiscard]] std::vector<double> times() const;  ///< {0} when nothing moves
  /// The whole experiment as TOML; reading it gives the same experiment, bit for bit.
  [[nodiscard]] std::string resolved() const;
};

using Systems = std::vector<std::unique_ptr<System>>;

/// Throws InputError for whatever cannot be meant.
[[nodiscard]] Experiment read_experiment(const std::filesystem::path& file, const Systems& systems);
[[nodiscard]] Experiment make_experiment(const Document& document, const Systems& systems);

/// Version of the program, "MAJOR.MINOR.PATCH".
[[nodiscard]] std::string_view version();

}  // namespace iclflow
