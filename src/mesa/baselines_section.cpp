#include "iclflow/mesa/baselines_section.hpp"

#include <fmt/format.h>

#include <limits>

namespace iclflow {

namespace {

constexpr std::int64_t most_sequences = 10'000'000;
constexpr std::int64_t most_steps = 24;  ///< beyond, least squares in the polynomials is rounding
constexpr double largest_lambda = 1e9;   ///< beyond, the inverse of an early, singular matrix is rounding
constexpr std::size_t most_entries = 32;
constexpr std::int64_t most_stacked = 64;

void check_lambda(const Section& section, std::string_view key, double lambda) {
  if (lambda < 1.0 / largest_lambda || lambda > largest_lambda) {
    section.fail(key, fmt::format("impossible value ({})", lambda), "numbers from 1e-9 to 1e9");
  }
}

}  // namespace

std::optional<BaselinePlan> read_baselines(const Section& root, double model_clip) {
  const auto section = root.find_section("baselines");
  if (!section) return std::nullopt;
  BaselinePlan plan;
  plan.sequences = static_cast<std::size_t>(
      section->integer("sequences", 2, most_sequences, static_cast<std::int64_t>(plan.sequences)));
  plan.seed = static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  if (section->has("ridge")) plan.ridge = section->numbers("ridge", Sign::positive);
  if (plan.ridge.size() > most_entries) {
    section->fail("ridge", fmt::format("{} values", plan.ridge.size()), fmt::format("at most {}", most_entries));
  }
  for (const double lambda : plan.ridge) check_lambda(*section, "ridge", lambda);
  if (section->has("preconditioned_steps")) {
    plan.preconditioned_steps.clear();
    for (const std::int64_t steps : section->integers("preconditioned_steps", 0, most_steps, most_entries)) {
      plan.preconditioned_steps.push_back(static_cast<int>(steps));
    }
  }
  plan.preconditioned_lambda = section->number("preconditioned_lambda", Sign::positive, plan.preconditioned_lambda);
  check_lambda(*section, "preconditioned_lambda", plan.preconditioned_lambda);
  plan.stacked = static_cast<int>(section->integer("stacked", 0, most_stacked, plan.stacked));
  plan.clip = section->number("clip", Sign::non_negative, model_clip);
  section->finish();
  return plan;
}

void resolve(const BaselinePlan& plan, TomlText& text) {
  text.table("baselines");
  text.put("sequences", static_cast<std::uint64_t>(plan.sequences));
  text.put("seed", plan.seed);
  text.put("ridge", plan.ridge);
  text.put("preconditioned_steps", plan.preconditioned_steps);
  text.put("preconditioned_lambda", plan.preconditioned_lambda);
  text.put("stacked", plan.stacked);
  text.put("clip", plan.clip);
}

}  // namespace iclflow
