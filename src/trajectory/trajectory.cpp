#include "iclflow/trajectory/trajectory.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace iclflow {

std::size_t Observable::width() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::span<const double> Observable::at(std::size_t sample) const {
  if ((sample + 1) * width() > values.size()) {
    throw std::out_of_range("observable '" + name + "' has no sample " + std::to_string(sample));
  }
  return std::span<const double>(values).subspan(sample * width(), width());
}

std::span<const double> Observable::last() const {
  if (values.empty()) throw std::out_of_range("observable '" + name + "' has no samples");
  return at(values.size() / width() - 1);
}

std::size_t Trajectory::declare(std::string name, std::string description, std::vector<std::string> dimensions,
                                std::vector<std::size_t> shape) {
  observables.push_back({std::move(name), std::move(description), std::move(dimensions), std::move(shape), {}});
  return observables.size() - 1;
}

void Trajectory::append(std::size_t observable, double value) {
  append(observable, std::span<const double>(&value, 1));
}

void Trajectory::append(std::size_t observable, std::span<const double> row) {
  Observable& target = observables.at(observable);
  if (row.size() != target.width()) {
    throw std::invalid_argument("observable '" + target.name + "' takes rows of " + std::to_string(target.width()) +
                                " values, got " + std::to_string(row.size()));
  }
  target.values.insert(target.values.end(), row.begin(), row.end());
}

bool Trajectory::has(std::string_view name) const {
  return std::any_of(observables.begin(), observables.end(), [&](const Observable& o) { return o.name == name; });
}

const Observable& Trajectory::operator[](std::string_view name) const {
  const auto found =
      std::find_if(observables.begin(), observables.end(), [&](const Observable& o) { return o.name == name; });
  if (found == observables.end()) throw std::out_of_range("trajectory has no observable '" + std::string(name) + "'");
  return *found;
}

}  // namespace iclflow
