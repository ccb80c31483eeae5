#include <fmt/format.h>

#include <limits>

#include "iclflow/regression/closure_table.hpp"

namespace iclflow {

namespace {

constexpr std::size_t largest_list = 1000;
constexpr std::int64_t largest_block = 65536;
constexpr std::int64_t longest_context = 16'777'216;
constexpr std::int64_t largest_context_count = 100'000'000;
constexpr double largest_numbers = 1e14;
constexpr double largest_context = 1.25e8;  // entries of one context: 1 GB a thread

std::vector<int> read_list(const Section& section, const char* key, std::int64_t largest) {
  std::vector<int> list;
  for (const std::int64_t value : section.integers(key, 1, largest, largest_list)) {
    list.push_back(static_cast<int>(value));
  }
  return list;
}

}  // namespace

std::optional<ClosurePlan> read_closures(const Section& root, const Problem& problem) {
  const auto section = root.find_section("closures");
  if (!section) return std::nullopt;
  ClosurePlan plan;
  plan.block_dimensions = read_list(*section, "block_dimensions", largest_block);
  plan.context_lengths = read_list(*section, "context_lengths", longest_context);
  plan.numbers = section->number("numbers", Sign::positive, plan.numbers);
  if (plan.numbers > largest_numbers) {
    section->fail("numbers", fmt::format("impossible value ({})", plan.numbers),
                  fmt::format("at most {}", largest_numbers));
  }
  plan.contexts =
      static_cast<int>(section->integer("contexts", SampledLoss::smallest, largest_context_count, plan.contexts));
  plan.seed = static_cast<std::uint64_t>(section->integer(
      "seed", 0, std::numeric_limits<std::int64_t>::max() - 1'000'000, static_cast<std::int64_t>(plan.seed)));
  if (problem.heads < 2) section->fail("block_dimensions", "needs two heads", "problem.heads of at least 2");
  for (const int dimension : plan.block_dimensions) {
    for (const int length : plan.context_lengths) {
      const double entries = (dimension + 1.0) * problem.tasks() * length;
      if (entries > largest_context) {
        section->fail("context_lengths", fmt::format("too large a context: {:.3g} entries", entries),
                      fmt::format("at most {:.3g}, by shorter contexts or smaller block_dimensions", largest_context));
      }
    }
  }
  section->finish();
  return plan;
}

void ClosurePlan::resolve(TomlText& text) const {
  text.table("closures");
  text.put("block_dimensions", block_dimensions);
  text.put("context_lengths", context_lengths);
  text.put("numbers", numbers);
  text.put("contexts", contexts);
  text.put("seed", seed);
}

}  // namespace iclflow
