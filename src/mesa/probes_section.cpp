#include "iclflow/mesa/probes_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace iclflow {

namespace {

constexpr std::int64_t least_sequences = 200;  ///< fewer leave no sequence for each number of a decoder
constexpr std::int64_t most_sequences = 10'000'000;
constexpr std::int64_t most_sensitivity = 10'000;
constexpr std::size_t most_positions = 64;
constexpr double largest_lambda = 1e9;

std::vector<int> default_positions(int length) {
  std::vector<int> positions;
  for (int power = 1; power < length; power *= 10) {
    for (const int t : {power, 2 * power, 5 * power}) {
      if (t > 1 && t < length) positions.push_back(t);
    }
  }
  positions.push_back(length);
  return positions;
}

}  // namespace

std::optional<ProbePlan> read_probes(const Section& root, int length) {
  const auto section = root.find_section("probes");
  if (!section) return std::nullopt;
  ProbePlan plan;
  const auto count = [&](const char* key, std::int64_t low, std::int64_t high, std::size_t fallback) {
    return static_cast<std::size_t>(section->integer(key, low, high, static_cast<std::int64_t>(fallback)));
  };
  plan.sequences = count("sequences", least_sequences, most_sequences, plan.sequences);
  plan.positions = default_positions(length);
  if (section->has("positions")) {
    plan.positions.clear();
    for (const std::int64_t t : section->integers("positions", 1, length, most_positions)) {
      plan.positions.push_back(static_cast<int>(t));
    }
  }
  plan.ridge = section->number("ridge", Sign::positive, plan.ridge);
  plan.lambda = section->number("lambda", Sign::positive, plan.lambda);
  if (plan.lambda > largest_lambda || plan.lambda < 1.0 / largest_lambda) {
    section->fail("lambda", fmt::format("impossible value ({})", plan.lambda), "numbers from 1e-9 to 1e9");
  }
  plan.past = static_cast<int>(section->integer("past", 0, length, std::min(plan.past, length)));
  plan.sensitivity_sequences = count("sensitivity_sequences", 0, most_sensitivity, plan.sensitivity_sequences);
  plan.seed = static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  section->finish();
  return plan;
}

void resolve(const ProbePlan& plan, TomlText& text) {
  text.table("probes");
  text.put("sequences", static_cast<std::uint64_t>(plan.sequences));
  text.put("positions", plan.positions);
  text.put("ridge", plan.ridge);
  text.put("lambda", plan.lambda);
  text.put("past", plan.past);
  text.put("sensitivity_sequences", static_cast<std::uint64_t>(plan.sensitivity_sequences));
  text.put("seed", plan.seed);
}

}  // namespace iclflow
