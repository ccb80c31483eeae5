#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "iclflow/trajectory/dynamics.hpp"

namespace iclflow {

enum class Direction { rising, falling };

/// A crossing to be located while a dynamics evolves.
struct Event {
  std::string quantity;  ///< see Dynamics::quantity
  double level = 0.0;
  Direction direction = Direction::falling;
  bool terminal = false;  ///< the evolution ends at the event, which becomes its last sample
};

/// Everything needed to go on later and retrace the same bits.
struct Checkpoint {
  Trajectory trajectory;  ///< samples so far
  Eigen::VectorXd state;
  double time = 0.0;
  double step = 0.0;             ///< ODE: the step size that would be tried next
  std::uint64_t step_count = 0;  ///< steps done
  std::uint64_t evaluations = 0;
  std::uint64_t rejections = 0;
  /// For each event the side of its level on which the quantity was last: 1 above, -1 below, 0 never off the level.
  /// May be left empty: it then follows from the state, unless the quantity sits exactly on the level.
  std::vector<int> event_sides;
  /// What the method has learnt from earlier steps: which of its parts is in use, the spectral radius.
  std::vector<double> memory;
};

/// How the outside watches and stops an evolution. Empty functions are allowed.
struct Control {
  std::function<bool()> interrupted;                  ///< polled every step; true ends with Status::interrupted
  std::function<void(double fraction)> progress;      ///< fraction of the final time, 0..1
  std::function<void(const Checkpoint&)> checkpoint;  ///< after every sample; the callee limits its own rate
  std::optional<Checkpoint> resume;
};

enum class Status { completed, interrupted, failed };

struct Outcome {
  Trajectory trajectory;  ///< samples up to the end, the interruption or the failure
  Status status = Status::completed;
  std::string message;  ///< on failure one sentence: t, step size, component, last finite loss
  std::uint64_t steps = 0;
  std::uint64_t rejections = 0;
  std::uint64_t evaluations = 0;
  /// Where it stopped, to be resumed after an interruption; .trajectory is left empty here. With bulirsch_stoer it is
  /// the last sample (events after it stand in `trajectory` already and are found again).
  Checkpoint last;
};

}  // namespace iclflow
