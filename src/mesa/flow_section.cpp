#include "iclflow/mesa/flow_section.hpp"

#include <fmt/format.h>

#include "iclflow/experiment/stepper_section.hpp"

namespace iclflow {

namespace {

constexpr std::int64_t largest_dimension = 64;
constexpr std::int64_t largest_length = 20'000;

FirstState read_law(const Section& section) {
  if (section.kind("initial") == Value::Kind::text && section.text("initial") == "ones") {
    section.fail("initial",
                 "impossible value (\"ones\"): moments with an odd exponent do not vanish, so that weights "
                 "off the two blocks' diagonals are trained, too",
                 "normal, uniform, signs, sparse");
  }
  const std::string law = section.choice("initial", {{"normal", "uniform", "signs", "sparse"}}, "normal");
  if (law == "uniform") return FirstState::uniform;
  if (law == "signs") return FirstState::signs;
  return law == "sparse" ? FirstState::sparse : FirstState::normal;
}

UnitarySequences read_sequences(const Section& section) {
  UnitarySequences sequences;
  const bool unitary = section.choice("kind", {transition_kinds()}) == "unitary";
  sequences.kind = unitary ? TransitionKind::unitary : TransitionKind::rotation;
  sequences.dimension = static_cast<int>(section.integer("state_dimension", 1, largest_dimension));
  if (!unitary && sequences.dimension % 2 != 0) {
    section.fail("state_dimension", fmt::format("impossible value ({}) for rotations of planes", sequences.dimension),
                 "an even number, or kind = \"unitary\"");
  }
  sequences.length = static_cast<int>(section.integer("length", 3, largest_length));
  sequences.initial = read_law(section);
  sequences.initial_scale = section.number("initial_scale", Sign::positive, 1.0);
  section.finish();
  const ProductLoss loss = product_loss(sequences);
  if (!(loss.linear >= 1e-60 && loss.quadratic >= 1e-60 && loss.linear <= 1e60 && loss.quadratic <= 1e60)) {
    section.fail("initial_scale", fmt::format("impossible value ({})", sequences.initial_scale),
                 "a number whose sixth power is from about 1e-60 to 1e60");
  }
  return sequences;
}

void read_model(const Section& section) {
  const std::vector<std::string> layers = section.texts("layers");
  if (layers != std::vector<std::string>{"linear"}) {
    section.fail("layers", "the two-parameter flow is that of one linear layer", "[\"linear\"]");
  }
  section.finish();
}

AutoregressiveDynamics read_dynamics(const Section& section, double last) {
  constexpr int default_batch = 200;
  AutoregressiveDynamics dynamics{read_reduction_dynamics(section, last, true, default_batch)};
  if (!dynamics.is_flow()) dynamics.active_blocks = section.choice("blocks", {{"all", "active"}}, "all") == "active";
  section.finish();
  return dynamics;
}

}  // namespace

const std::vector<std::string_view>& transition_kinds() {
  static const std::vector<std::string_view> kinds{"unitary", "rotation"};
  return kinds;
}

std::string_view name(TransitionKind kind) { return kind == TransitionKind::unitary ? "unitary" : "rotation"; }

std::string_view name(FirstState law) {
  switch (law) {
    case FirstState::normal:
      return "normal";
    case FirstState::uniform:
      return "uniform";
    case FirstState::signs:
      return "signs";
    case FirstState::sparse:
      break;
  }
  return "sparse";
}

DynamicsPart AutoregressiveDynamics::part() const {
  const char* variant = is_flow() ? "two-parameter" : (active_blocks ? "active blocks" : "all blocks");
  return {name, kind, variant, seeds, true};
}

AutoregressivePlan read_autoregressive_plan(const Section& root) {
  AutoregressivePlan plan;
  plan.sequences = read_sequences(root.section("sequence"));
  if (const auto model = root.find_section("model")) read_model(*model);
  if (const auto initial = root.find_section("initial")) {
    plan.a = initial->number("a", Sign::any, plan.a);
    plan.b = initial->number("b", Sign::any, plan.b);
    plan.perturbation = initial->number("perturbation", Sign::non_negative, 0.0);
    initial->finish();
  }
  for (const Section& section : root.sections("dynamics")) {
    plan.dynamics.push_back(read_dynamics(section, final_time(root)));
  }
  plan.logarithmic_time = logarithmic_time(root);
  return plan;
}

void resolve(const AutoregressivePlan& plan, TomlText& text) {
  text.table("sequence");
  text.put("kind", name(plan.sequences.kind));
  text.put("state_dimension", plan.sequences.dimension);
  text.put("length", plan.sequences.length);
  text.put("initial", name(plan.sequences.initial));
  text.put("initial_scale", plan.sequences.initial_scale);
  text.table("model");
  text.put("layers", std::vector<std::string>{"linear"});
  text.table("initial");
  text.put("a", plan.a);
  text.put("b", plan.b);
  text.put("perturbation", plan.perturbation);
  for (const AutoregressiveDynamics& one : plan.dynamics) {
    one.resolve(text);
    if (!one.is_flow()) text.put("blocks", one.active_blocks ? "active" : "all");
  }
}

}  // namespace iclflow
