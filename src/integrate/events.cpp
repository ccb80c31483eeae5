#include "events.hpp"

#include <algorithm>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace iclflow {
namespace {

/// Interior points of a step at which the interpolant is looked at.
constexpr int kInside = 5;

/// y(theta) = (1 + 2 theta)(1 - theta)^2 y0 + theta^2 (3 - 2 theta) y1
///            + dt theta (1 - theta) ((1 - theta) f0 - theta f1); error O(dt^4). Only used to look, never to locate.
Eigen::VectorXd hermite(const Point& from, const Point& to, double theta) {
  const double dt = to.time - from.time;
  const double rest = 1.0 - theta;
  return (1.0 + 2.0 * theta) * rest * rest * from.state + theta * theta * (3.0 - 2.0 * theta) * to.state +
         dt * theta * rest * (rest * from.rate - theta * to.rate);
}

const char* name_of(Direction direction) { return direction == Direction::rising ? "rising" : "falling"; }

}  // namespace

int side_of_level(double value, double level) {
  const double rounding = 16.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(value), std::abs(level));
  if (value - level > rounding) return 1;
  if (level - value > rounding) return -1;
  return 0;  // also for a value that is not a number
}

bool ended_by_event(const Trajectory& trajectory, const std::vector<Event>& events) {
  for (const Event& event : events) {
    for (const EventRecord& record : trajectory.events) {
      if (event.terminal && record.quantity == event.quantity && record.level == event.level &&
          record.direction == name_of(event.direction)) {
        return true;
      }
    }
  }
  return false;
}

void record_event(Trajectory& trajectory, const Event& event, double time) {
  const auto later = std::find_if(trajectory.events.begin(), trajectory.events.end(),
                                  [time](const EventRecord& record) { return record.time > time; });
  trajectory.events.insert(later, {event.quantity, event.level, name_of(event.direction), time});
}

void forget_events_after(Trajectory& trajectory, double time) {
  const auto later = std::find_if(trajectory.events.begin(), trajectory.events.end(),
                                  [time](const EventRecord& record) { return record.time > time; });
  trajectory.events.erase(later, trajectory.events.end());
}

EventWatch::EventWatch(const Dynamics& dynamics, const std::vector<Event>& events, const Eigen::VectorXd& start,
                       const std::vector<int>& sides)
    : dynamics_(dynamics), events_(events), sides_(events.size(), 0) {
  if (!sides.empty() && sides.size() != events.size()) {
    throw std::invalid_argument("the checkpoint watched other events");
  }
  for (std::size_t e = 0; e < events.size(); ++e) {
    sides_[e] = side_of_level(dynamics.quantity(events[e].quantity, start), events[e].level);
    if (sides_[e] == 0 && !sides.empty()) sides_[e] = sides[e];
  }
}

std::vector<EventWatch::Crossing> EventWatch::crossings(const Point& from, const Point& to,
                                                        const Propagate& propagate) {
  std::vector<Crossing> found;
  if (events_.empty()) return found;
  std::vector<Eigen::VectorXd> inside;
  for (int j = 1; j <= kInside; ++j) inside.push_back(hermite(from, to, static_cast<double>(j) / (kInside + 1)));
  for (std::size_t e = 0; e < events_.size(); ++e) search(e, inside, from, to, propagate, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Crossing& a, const Crossing& b) { return a.offset < b.offset; });
  return found;
}

void EventWatch::search(std::size_t event, const std::vector<Eigen::VectorXd>& inside, const Point& from,
                        const Point& to, const Propagate& propagate, std::vector<Crossing>& found) {
  const Event& wanted = events_[event];
  const double dt = to.time - from.time;
  const double precision = 2.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(to.time), dt);
  const auto value = [&](const Eigen::VectorXd& y) {
    try {
      return dynamics_.quantity(wanted.quantity, y);
    } catch (const std::domain_error&) {
      return std::numeric_limits<double>::quiet_NaN();  // on no side
    }
  };
  const auto excess_after = [&](double offset) { return value(propagate(offset)) - wanted.level; };
  const auto close = [&](double a, double b) { return std::abs(b - a) <= precision; };

  int& side = sides_[event];
  double left = 0.0;
  double left_excess = value(from.state) - wanted.level;
  for (std::size_t j = 0; j <= inside.size(); ++j) {
    const bool end = j == inside.size();
    const double right = end ? dt : dt * static_cast<double>(j + 1) / (kInside + 1);
    double seen = value(end ? to.state : inside[j]);
    if (side_of_level(seen, wanted.level) * side != -1) continue;
    if (!end) seen = value(propagate(right));  // the interpolant may err: confirm
    if (side_of_level(seen, wanted.level) * side != -1) continue;
    const double right_excess = seen - wanted.level;
    if ((wanted.direction == Direction::rising) == (side < 0)) {
      double offset = left;  // it already sat on the level there
      if (left_excess * right_excess < 0.0) {
        std::uintmax_t iterations = 200;
        offset =
            boost::math::tools::toms748_solve(excess_after, left, right, left_excess, right_excess, close, iterations)
                .second;
      }
      found.push_back({event, offset});
    }
    side = -side;
    left = right;
    left_excess = right_excess;
  }
  if (side == 0) side = side_of_level(value(to.state), wanted.level);
}

}  // namespace iclflow
