#include "iclflow/integrate/ode.hpp"

#include <cmath>
#include <stdexcept>
#include <string>

#include "evolution.hpp"

namespace iclflow {
namespace {

const StepperInfo& find_stepper(const std::string& name) {
  for (const StepperInfo& info : steppers()) {
    if (info.name == name) return info;
  }
  throw std::invalid_argument("unknown stepper '" + name + "'");
}

void validate(const std::vector<double>& times, const StepperOptions& options, bool adaptive) {
  if (times.empty()) throw std::invalid_argument("no sample times");
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (!std::isfinite(times[i])) throw std::invalid_argument("sample times must be finite");
    if (i > 0 && !(times[i] > times[i - 1])) throw std::invalid_argument("sample times must increase");
  }
  const auto positive = [](double value, const char* name) {
    if (!(value > 0.0)) throw std::invalid_argument(std::string(name) + " must be positive");
  };
  const auto not_negative = [](double value, const char* name) {
    if (!(value >= 0.0) || !std::isfinite(value)) throw std::invalid_argument(std::string(name) + " must be >= 0");
  };
  not_negative(options.step, "step");
  if (!adaptive && options.step == 0.0) throw std::invalid_argument("stepper '" + options.stepper + "' needs a step");
  positive(options.relative_tolerance, "relative_tolerance");
  not_negative(options.absolute_tolerance, "absolute_tolerance");
  not_negative(options.minimum_step, "minimum_step");
  positive(options.maximum_step, "maximum_step");
  if (options.maximum_step < options.minimum_step) {
    throw std::invalid_argument("maximum_step must not be below minimum_step");
  }
}

}  // namespace

Outcome integrate(const OdeSystem& system, const std::vector<double>& times, const StepperOptions& options,
                  const std::vector<Event>& events, const Control& control) {
  const bool adaptive = find_stepper(options.stepper).adaptive;
  validate(times, options, adaptive);
  return Evolution(system, times, options, adaptive, events, control).run();
}

}  // namespace iclflow
