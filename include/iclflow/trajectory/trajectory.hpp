#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace iclflow {

/// One named quantity sampled along a trajectory. values is time-major, then the labelled dimensions.
struct Observable {
  std::string name;                     ///< "loss", "mu", "omega", "leakage_key_query", ...
  std::string description;              ///< what it is, with its normalisation
  std::vector<std::string> dimensions;  ///< after time, e.g. {"head", "task"}; empty for a scalar
  std::vector<std::size_t> shape;       ///< sizes of `dimensions`
  std::vector<double> values;

  [[nodiscard]] std::size_t width() const;  ///< product of shape, 1 for a scalar
  [[nodiscard]] std::span<const double> at(std::size_t sample) const;
  [[nodiscard]] std::span<const double> last() const;  ///< throws std::out_of_range when empty
};

/// A crossing that happened: quantity passed level in direction ("rising" | "falling") at time.
struct EventRecord {
  std::string quantity;
  double level = 0.0;
  std::string direction;
  double time = 0.0;
};

/// Sampled times and the observables at them. Every observable has one row per time.
struct Trajectory {
  std::vector<double> times;
  std::vector<Observable> observables;
  std::vector<EventRecord> events;

  /// Adds an observable without samples and returns its index.
  std::size_t declare(std::string name, std::string description, std::vector<std::string> dimensions = {},
                      std::vector<std::size_t> shape = {});
  void append(std::size_t observable, double value);
  void append(std::size_t observable, std::span<const double> row);
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const Observable& operator[](std::string_view name) const;  ///< throws std::out_of_range naming it
  [[nodiscard]] std::size_t samples() const { return times.size(); }
};

/// What one dynamics of an experiment left behind: one member per seed (a single one when nothing is random).
struct DynamicsResult {
  std::string name;
  std::string kind;                  ///< "spectral-flow" | "attention" | "fixed"
  std::string variant;               ///< closure or estimator
  std::vector<std::uint64_t> seeds;  ///< empty when nothing is random; then members.size() == 1
  std::vector<Trajectory> members;   ///< members may be shorter than asked after an interruption or a failure
  std::uint64_t evaluations = 0;     ///< right-hand sides or gradient evaluations, summed over members
  double wall_seconds = 0.0;
  bool interrupted = false;
  std::string failure;  ///< empty unless the dynamics failed; one sentence
  /// Where each member stopped, in the coordinates of its Dynamics; trajectory.nc does not hold them.
  std::vector<Eigen::VectorXd> final_states{};
};

}  // namespace iclflow
