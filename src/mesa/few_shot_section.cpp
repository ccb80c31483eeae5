#include "iclflow/mesa/few_shot_section.hpp"

#include <fmt/format.h>

#include <limits>

namespace iclflow {

namespace {

constexpr std::int64_t most_pairs = 1000;
constexpr std::int64_t most_prefix = 1000;
constexpr std::int64_t most_sequences = 10'000'000;
constexpr double largest_lambda = 1e9;

}  // namespace

std::optional<FewShotPlan> read_few_shot(const Section& root, InitialLaw inputs) {
  const auto section = root.find_section("few_shot");
  if (!section) return std::nullopt;
  FewShotPlan plan;
  plan.pairs = static_cast<int>(section->integer("pairs", 1, most_pairs, plan.pairs));
  const std::string fallback = inputs == InitialLaw::uniform ? "uniform" : "normal";
  plan.inputs = section->choice("inputs", {{"uniform", "normal"}}, fallback) == "uniform" ? InitialLaw::uniform
                                                                                          : InitialLaw::normal;
  plan.sequences = static_cast<std::size_t>(
      section->integer("sequences", 2, most_sequences, static_cast<std::int64_t>(plan.sequences)));
  plan.batch = static_cast<int>(section->integer("batch", 1, 1'000'000, plan.batch));
  plan.steps =
      static_cast<std::uint64_t>(section->integer("steps", 0, 100'000'000, static_cast<std::int64_t>(plan.steps)));
  plan.learning_rate_eos = section->number("learning_rate_eos", Sign::positive, plan.learning_rate_eos);
  plan.learning_rate_prefix = section->number("learning_rate_prefix", Sign::positive, plan.learning_rate_prefix);
  plan.prefix = static_cast<int>(section->integer("prefix", 0, most_prefix, plan.prefix));
  plan.initial_deviation = section->number("initial_deviation", Sign::non_negative, plan.initial_deviation);
  plan.lambda = section->number("lambda", Sign::positive, plan.lambda);
  if (plan.lambda > largest_lambda || plan.lambda < 1.0 / largest_lambda) {
    section->fail("lambda", fmt::format("impossible value ({})", plan.lambda), "numbers from 1e-9 to 1e9");
  }
  plan.seed = static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  section->finish();
  return plan;
}

void resolve(const FewShotPlan& plan, TomlText& text) {
  text.table("few_shot");
  text.put("pairs", plan.pairs);
  text.put("inputs", plan.inputs == InitialLaw::uniform ? "uniform" : "normal");
  text.put("sequences", static_cast<std::uint64_t>(plan.sequences));
  text.put("batch", plan.batch);
  text.put("steps", plan.steps);
  text.put("learning_rate_eos", plan.learning_rate_eos);
  text.put("learning_rate_prefix", plan.learning_rate_prefix);
  text.put("prefix", plan.prefix);
  text.put("initial_deviation", plan.initial_deviation);
  text.put("lambda", plan.lambda);
  text.put("seed", plan.seed);
}

}  // namespace iclflow
