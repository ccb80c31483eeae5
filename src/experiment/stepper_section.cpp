#include "iclflow/experiment/stepper_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace iclflow {

namespace {

constexpr std::size_t largest_seed_count = 10'000;

const StepperInfo& stepper_named(std::string_view name) {
  return *std::find_if(steppers().begin(), steppers().end(), [&](const auto& info) { return info.name == name; });
}

}  // namespace

StepperOptions read_stepper(const Section& section, double final_time, bool jacobian) {
  Choices choices;
  for (const StepperInfo& info : steppers()) {
    if (jacobian || !info.implicit) choices.allowed.push_back(info.name);
  }
  StepperOptions options;
  if (!has_cvode() && section.has("stepper") && section.text("stepper") == "cvode") {
    section.fail("stepper", "\"cvode\" is not in this build: SUNDIALS was not found when it was configured",
                 "install libsundials-dev and configure again, or \"auto\"");
  }
  options.stepper = section.choice("stepper", choices, "dopri5");
  if (!stepper_named(options.stepper).adaptive) options.step = section.number("step", Sign::positive);
  options.relative_tolerance = section.number("relative_tolerance", Sign::positive, options.relative_tolerance);
  if (options.relative_tolerance >= 1.0) {
    section.fail("relative_tolerance", fmt::format("impossible value ({})", options.relative_tolerance),
                 "a number above 0 and below 1");
  }
  options.absolute_tolerance = section.number("absolute_tolerance", Sign::positive, options.absolute_tolerance);
  options.minimum_step = section.number("minimum_step", Sign::non_negative, 0.0);
  options.maximum_step = section.number("maximum_step", Sign::positive, final_time > 0.0 ? final_time : 1.0);
  if (options.maximum_step < options.minimum_step) {
    section.fail("maximum_step", fmt::format("impossible value ({})", options.maximum_step),
                 fmt::format("a number of at least minimum_step ({})", options.minimum_step));
  }
  options.maximum_steps = static_cast<std::uint64_t>(
      section.integer("maximum_steps", 1, largest_seed, static_cast<std::int64_t>(options.maximum_steps)));
  if (!stepper_named(options.stepper).adaptive &&
      final_time / options.step > static_cast<double>(options.maximum_steps)) {
    section.fail("step",
                 fmt::format("impossible value ({}): more than maximum_steps ({}) to time.final", options.step,
                             options.maximum_steps),
                 "a longer step, or more maximum_steps");
  }
  options.maximum_rejections = static_cast<std::uint64_t>(
      section.integer("maximum_rejections", 1, largest_seed, static_cast<std::int64_t>(options.maximum_rejections)));
  return options;
}

void resolve_stepper(const StepperOptions& options, TomlText& text) {
  text.put("stepper", options.stepper);
  if (!stepper_named(options.stepper).adaptive) text.put("step", options.step);
  text.put("relative_tolerance", options.relative_tolerance);
  text.put("absolute_tolerance", options.absolute_tolerance);
  text.put("minimum_step", options.minimum_step);
  text.put("maximum_step", options.maximum_step);
  text.put("maximum_steps", options.maximum_steps);
  text.put("maximum_rejections", options.maximum_rejections);
}

std::vector<std::uint64_t> read_seeds(const Section& section, bool single_allowed) {
  if (single_allowed && section.has("seed") && !section.has("seeds")) {
    return {static_cast<std::uint64_t>(section.integer("seed", 0, largest_seed))};
  }
  if (!section.has("seeds")) return {1};
  std::vector<std::uint64_t> seeds;
  for (const std::int64_t seed : section.integers("seeds", 0, largest_seed, largest_seed_count)) {
    seeds.push_back(static_cast<std::uint64_t>(seed));
  }
  if (std::set<std::uint64_t>(seeds.begin(), seeds.end()).size() != seeds.size()) {
    section.fail("seeds", "holds a seed twice", "different integers");
  }
  return seeds;
}

double final_time(const Section& root) {
  const auto time = root.find_section("time");
  return time && time->is_number("final") ? time->number("final", Sign::positive) : 0.0;
}

bool logarithmic_time(const Section& root) {
  const auto time = root.find_section("time");
  return time && time->kind("spacing") == Value::Kind::text && time->text("spacing") == "log";
}

}  // namespace iclflow
