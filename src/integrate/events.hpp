#pragma once

#include <functional>
#include <vector>

#include "iclflow/integrate/control.hpp"
#include "single_step.hpp"

namespace iclflow {

/// Side of the level: 1 above, -1 below, 0 when it differs from the level by rounding only.
[[nodiscard]] int side_of_level(double value, double level);
/// True if `events` holds a terminal one that stands among the recorded ones: such a run has ended.
[[nodiscard]] bool ended_by_event(const Trajectory& trajectory, const std::vector<Event>& events);
/// Inserts the crossing keeping the records in order of time.
void record_event(Trajectory& trajectory, const Event& event, double time);
/// Forgets events later than `time`.
void forget_events_after(Trajectory& trajectory, double time);

/// Watches quantities along an integration and locates their crossings.
class EventWatch {
 public:
  struct Crossing {
    std::size_t event;
    double offset;  ///< time since the start of the step
  };
  /// State reached from the start of the step after the given time, by the integrating method itself.
  using Propagate = std::function<Eigen::VectorXd(double offset)>;

  /// Throws std::invalid_argument for a quantity that `dynamics` does not know. `sides` may be empty.
  EventWatch(const Dynamics& dynamics, const std::vector<Event>& events, const Eigen::VectorXd& start,
             const std::vector<int>& sides);

  /// Crossings in the accepted step, in order of time. Sign changes are looked for at both ends and on a cubic Hermite
  /// interpolant in between, so that a quantity which crosses twice is seen; they are confirmed and located on
  /// propagated states only. A strict change of side is needed: touching a level is no crossing.
  [[nodiscard]] std::vector<Crossing> crossings(const Point& from, const Point& to, const Propagate& propagate);
  [[nodiscard]] const std::vector<int>& sides() const { return sides_; }

 private:
  void search(std::size_t event, const std::vector<Eigen::VectorXd>& inside, const Point& from, const Point& to,
              const Propagate& propagate, std::vector<Crossing>& found);

  const Dynamics& dynamics_;
  const std::vector<Event>& events_;
  std::vector<int> sides_;
};

}  // namespace iclflow
