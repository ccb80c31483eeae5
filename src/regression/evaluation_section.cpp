#include "iclflow/regression/evaluation_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace iclflow {

namespace {

constexpr std::int64_t longest_context = 16'777'216;
constexpr std::size_t largest_length_count = 4096;
constexpr std::int64_t largest_context_count = 100'000'000;
constexpr double largest_context = 1.25e8;  // entries of one context: 1 GB a thread
constexpr double largest_weights = 1.5e7;   // heads (d_x + d_y)^2, as for a simulation
constexpr std::string_view name_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
const std::string name_allowed = "one to 64 of the characters A-Z a-z 0-9 _ . -";

std::vector<int> geometric(std::int64_t from, std::int64_t to, std::int64_t points) {
  std::vector<int> lengths;
  const double ratio = static_cast<double>(to) / static_cast<double>(from);
  for (std::int64_t k = 0; k < points; ++k) {
    const double share = points > 1 ? static_cast<double>(k) / static_cast<double>(points - 1) : 0.0;
    const auto length = static_cast<int>(std::lround(static_cast<double>(from) * std::pow(ratio, share)));
    if (lengths.empty() || length > lengths.back()) lengths.push_back(length);
  }
  return lengths;
}

/// { from, to }: every length; { from, to, points }: in geometric progression, rounded, without repetitions.
std::vector<int> read_range(const Section& range) {
  const std::int64_t from = range.integer("from", 1, longest_context);
  const std::int64_t to = range.integer("to", from, longest_context);
  if (range.has("points")) {
    const std::int64_t points = range.integer("points", 1, static_cast<std::int64_t>(largest_length_count));
    range.finish();
    if (points == 1 && to > from) {
      range.fail("points", "impossible value (1)", "at least 2 from one length to another");
    }
    return geometric(from, to, points);
  }
  range.finish();
  if (to - from >= static_cast<std::int64_t>(largest_length_count)) {
    range.fail("to", fmt::format("impossible value ({}): {} lengths", to, to - from + 1),
               fmt::format("at most {} lengths; fewer by points", largest_length_count));
  }
  std::vector<int> lengths;
  for (std::int64_t k = from; k <= to; ++k) lengths.push_back(static_cast<int>(k));
  return lengths;
}

std::vector<int> read_lengths(const Section& section, const Problem& problem) {
  std::vector<int> lengths;
  if (section.kind("context_lengths") == Value::Kind::table) {
    lengths = read_range(section.section("context_lengths"));
  } else {
    for (const std::int64_t k : section.integers("context_lengths", 1, longest_context, largest_length_count)) {
      lengths.push_back(static_cast<int>(k));
    }
    std::sort(lengths.begin(), lengths.end());
    const auto twice = std::adjacent_find(lengths.begin(), lengths.end());
    if (twice != lengths.end()) {
      section.fail("context_lengths", fmt::format("holds {} twice", *twice), "different lengths");
    }
  }
  const double entries = (problem.embedding() + 2.0 * problem.heads) * lengths.back();
  if (entries > largest_context) {
    section.fail("context_lengths",
                 fmt::format("impossible value ({}): {:.3g} numbers a context", lengths.back(), entries),
                 fmt::format("lengths of at most {:.0f}", std::floor(largest_context * lengths.back() / entries)));
  }
  return lengths;
}

void check_name(const Section& section, std::string_view key, const std::string& name, std::set<std::string>& taken) {
  if (name.empty() || name.size() > 64 || name.find_first_not_of(name_letters) != std::string::npos) {
    section.fail(key, fmt::format("impossible name ({})", TomlText::quoted(name.substr(0, 64))), name_allowed);
  }
  if (!taken.insert(name).second) {
    section.fail(key, fmt::format("the name \"{}\" is taken", name), "a name of its own for every entry");
  }
}

std::string kind_names(bool with_rate_only) {
  std::vector<std::string> names;
  for (const EstimatorInfo& info : estimator_kinds()) {
    if (info.has_rate || !with_rate_only) names.push_back(fmt::format("\"{}\"", info.name));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

const EstimatorInfo* kind_named(const std::string& name) {
  for (const EstimatorInfo& info : estimator_kinds()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

/// { name, kind, eta }, { name, kind = "ridge", lambda }
Estimator read_estimator_table(const Section& table) {
  const std::string kind = table.text("kind");
  const EstimatorInfo* info = kind_named(kind);
  if (info == nullptr) {
    table.fail("kind", fmt::format("unknown value ({})", TomlText::quoted(kind)), kind_names(false));
  }
  Estimator estimator{table.text("name", kind), info->kind};
  if (table.has("eta")) {
    if (!info->has_rate) table.fail("eta", fmt::format("does not belong to \"{}\"", kind), kind_names(true));
    estimator.rate = table.number("eta", Sign::any);
  }
  if (table.has("lambda")) {
    if (info->kind != EstimatorKind::ridge)
      table.fail("lambda", fmt::format("does not belong to \"{}\"", kind), "\"ridge\"");
    estimator.lambda = table.number("lambda", Sign::positive);
  }
  table.finish();
  return estimator;
}

std::vector<Estimator> read_estimators(const Section& section, std::set<std::string>& taken) {
  std::vector<Estimator> estimators;
  if (!section.has("estimators")) {
    for (const EstimatorInfo& info : estimator_kinds()) estimators.push_back({std::string(info.name), info.kind});
    for (const Estimator& estimator : estimators) check_name(section, "estimators", estimator.name, taken);
    return estimators;
  }
  for (const auto& item : section.texts_or_sections("estimators")) {
    if (const auto* table = std::get_if<Section>(&item)) {
      estimators.push_back(read_estimator_table(*table));
    } else {
      const auto& name = std::get<std::string>(item);
      const EstimatorInfo* info = kind_named(name);
      if (info == nullptr) {
        section.fail("estimators", fmt::format("unknown value ({})", TomlText::quoted(name)),
                     kind_names(false) + ", or a table { name, kind, eta or lambda }");
      }
      estimators.push_back({name, info->kind});
    }
    check_name(section, "estimators", estimators.back().name, taken);
  }
  return estimators;
}

Shift read_shift(const Section& section, const Problem& problem) {
  Shift shift;
  shift.name = section.text("name");
  shift.skewed_covariates = section.choice("covariates", {{"isotropic", "skewed"}}, "isotropic") == "skewed";
  shift.input_scale = section.number("input_scale", Sign::positive, 1.0);
  shift.orthogonal_queries = section.choice("queries", {{"independent", "orthogonal"}}, "independent") == "orthogonal";
  if (section.has("label_noise")) shift.noise_variance = section.number("label_noise", Sign::non_negative);
  section.finish();
  for (const char* key : {"input_scale", "label_noise"}) {
    const double value = key[0] == 'i' ? shift.input_scale : shift.noise(problem);
    if (value > 1e30 || (key[0] == 'i' && value < 1e-30)) {
      section.fail(key, fmt::format("impossible value ({})", value),
                   "a number of at most 1e30 (input_scale: at least 1e-30)");
    }
  }
  const bool same = !shift.skewed_covariates && shift.input_scale == 1.0 && !shift.orthogonal_queries &&
                    shift.noise(problem) == problem.noise_variance;
  if (same) {
    section.fail("name", fmt::format("the law \"{}\" is the training law", shift.name),
                 "a shift with covariates = \"skewed\", input_scale, queries = \"orthogonal\" or another label_noise");
  }
  return shift;
}

}  // namespace

std::optional<EvaluationPlan> read_evaluation(const Section& root, const Problem& problem,
                                              const std::vector<std::string>& names) {
  const auto section = root.find_section("evaluation");
  if (!section) return std::nullopt;
  const double weights = static_cast<double>(problem.heads) * problem.embedding() * problem.embedding();
  if (weights > largest_weights) {
    root.fail("evaluation", fmt::format("too large an evaluation: heads (d_x + d_y)^2 = {:.3g}", weights),
              fmt::format("at most {:.3g}, by fewer heads or smaller task_dimensions", largest_weights));
  }
  EvaluationPlan plan;
  plan.context_lengths = read_lengths(*section, problem);
  plan.contexts = static_cast<std::size_t>(section->integer("contexts", 2, largest_context_count, 50000));
  std::set<std::string> taken(names.begin(), names.end());
  plan.estimators = read_estimators(*section, taken);
  plan.seed = static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  plan.axes = section->choice("axes", {{"log", "linear", "semilog"}}, "log");
  std::set<std::string> laws;
  for (const Section& shift : section->sections("shift")) {
    plan.shifts.push_back(read_shift(shift, problem));
    check_name(shift, "name", plan.shifts.back().name, laws);
  }
  section->finish();
  return plan;
}

void EvaluationPlan::resolve(TomlText& text) const {
  text.table("evaluation");
  text.put("context_lengths", context_lengths);
  text.put("contexts", static_cast<std::uint64_t>(contexts));
  std::vector<std::string> items;
  for (const Estimator& estimator : estimators) {
    const auto kind = std::find_if(estimator_kinds().begin(), estimator_kinds().end(),
                                   [&](const EstimatorInfo& info) { return info.kind == estimator.kind; });
    std::string item = fmt::format("{{ name = {}, kind = \"{}\"", TomlText::quoted(estimator.name), kind->name);
    if (estimator.rate) item += fmt::format(", eta = {}", TomlText::number(*estimator.rate));
    if (estimator.lambda) item += fmt::format(", lambda = {}", TomlText::number(*estimator.lambda));
    items.push_back(item + " }");
  }
  text.raw("estimators", fmt::format("[{}]", fmt::join(items, ", ")));
  text.put("seed", seed);
  text.put("axes", axes);
  for (const Shift& shift : shifts) {
    text.element("evaluation.shift");
    text.put("name", shift.name);
    text.put("covariates", shift.skewed_covariates ? "skewed" : "isotropic");
    text.put("input_scale", shift.input_scale);
    text.put("queries", shift.orthogonal_queries ? "orthogonal" : "independent");
    if (shift.noise_variance) text.put("label_noise", *shift.noise_variance);
  }
}

}  // namespace iclflow
