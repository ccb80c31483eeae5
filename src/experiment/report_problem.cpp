#include <array>

#include "report_sections.hpp"

namespace iclflow::page {
namespace {

struct Quantity {
  const char* key;
  const char* symbol;
  const char* meaning;
};

constexpr std::array<Quantity, 26> quantities{{
    {"heads", "<i>H</i>", "attention heads"},
    {"tasks", "<i>I</i>", "tasks, one response each"},
    {"task_dimensions", "<i>d<sub>i</sub></i>", "covariates of each task"},
    {"dimension", "<i>d</i>", "covariates in all"},
    {"context_length", "<i>L</i>", "example pairs per context"},
    {"noise_variance", "<i>σ</i>²", "variance of the noise in the context's responses"},
    {"signal_variance", "<i>λ<sub>i</sub></i>", "variance of a task's regression coefficients"},
    {"response_scale", "", "convention of the response scale"},
    {"response_factor", "<i>s<sub>y</sub></i>", "scale of the responses"},
    {"parametrisation", "", "what is trained: K, Q, V, O (split) or their products (merged)"},
    {"score_scale", "", "convention of the score scale"},
    {"score_factor", "<i>s<sub>w</sub></i>", "scale of the scores"},
    {"rotation", "<i>Φ, Ψ</i>", "basis of covariates and responses"},
    {"rotation_seed", "", "seed of that basis"},
    {"signal_power", "<i>P<sub>i</sub></i>", "<i>s<sub>y</sub></i>² <i>λ<sub>i</sub> d<sub>i</sub></i>"},
    {"noise_factor", "<i>φ<sub>i</sub></i>", "1 + <i>σ</i>²/<i>P<sub>i</sub></i>"},
    {"sequence", "", "law of the sequences"},
    {"state_dimension", "<i>n</i>", "coordinates of an observed state"},
    {"hidden_dimension", "", "coordinates of the hidden state"},
    {"length", "<i>T</i>", "predicted states of a sequence"},
    {"noise_deviation", "", "standard deviation of the noise of each step"},
    {"layers", "", "layers of attention"},
    {"width", "<i>D</i>", "width of the residual stream"},
    {"key_dimension", "<i>k</i>", "of keys, queries and values of each head"},
    {"clip", "", "largest activation after each layer; 0: not clipped"},
    {"parameters", "", "trained numbers"},
}};

const Quantity* find_quantity(const std::string& key) {
  for (const Quantity& quantity : quantities) {
    if (key == quantity.key) return &quantity;
  }
  return nullptr;
}

std::string failed_dynamics(const Json& summary) {
  std::string text;
  for (const Json& dynamics : at(summary, {"dynamics"})) {
    const Json& failure = at(dynamics, {"failure"});
    if (failure.is_string()) text += " <i>" + shown(at(dynamics, {"name"})) + "</i>: " + shown(failure);
  }
  return text;
}

std::string expectation_table(const Json& expectations) {
  Table table("What the experiment expects", {"quantity", "at most", "found", "met"});
  for (const Json& expectation : expectations) {
    const Json& met = at(expectation, {"met"});
    table.row({shown(at(expectation, {"key"})), shown(at(expectation, {"allowed"})),
               at(expectation, {"value"}).is_number() ? significant(at(expectation, {"value"}).get<double>(), 3)
                                                      : missing("does not exist"),
               met.is_boolean() && met.get<bool>() ? "yes" : "<strong>no</strong>"});
  }
  return table.html();
}

std::string expectation_sentence(const Json& expectations) {
  std::size_t missed = 0;
  for (const Json& expectation : expectations) {
    const Json& met = at(expectation, {"met"});
    missed += met.is_boolean() && met.get<bool>() ? 0U : 1U;
  }
  if (missed > 0) {
    return "<p class=\"verdict bad\">Expectations missed: " + std::to_string(missed) + " of " +
           std::to_string(expectations.size()) + ".</p>\n";
  }
  return "<p class=\"verdict good\">All expectations met (" + std::to_string(expectations.size()) + ").</p>\n";
}

// Checks met, missed, and not measured.
std::string check_sentence(const Json& checks) {
  std::size_t met = 0;
  std::size_t missed = 0;
  for (const Json& check : checks) {
    const Json& own = at(check, {"met"});
    if (own.is_boolean()) ++(own.get<bool>() ? met : missed);
  }
  const std::size_t open = checks.size() - met - missed;
  const std::string rest = open > 0 ? ", " + std::to_string(open) + " not measured" : std::string();
  if (missed > 0) {
    return "<p class=\"verdict bad\">Checks missed: " + std::to_string(missed) + " of " +
           std::to_string(checks.size()) + rest + ".</p>\n";
  }
  return "<p class=\"verdict good\">Checks met: " + std::to_string(met) + " of " + std::to_string(checks.size()) +
         rest + ".</p>\n";
}

std::string sweep_verdict(const Json& summary) {
  const Json& members = at(summary, {"members"});
  const Json& broken = at(members, {"not_completed"});
  const Json& checks = at(summary, {"checks"});
  std::string text;
  if (!broken.empty()) {
    text = "<p class=\"verdict bad\">Members that did not complete: " + std::to_string(broken.size()) + " of " +
           shown(at(members, {"count"})) + ".</p>\n";
  }
  if (checks.is_array() && !checks.empty()) return text + check_sentence(checks);
  return text.empty() ? "<p class=\"verdict good\">All members completed (" + shown(at(members, {"count"})) + ").</p>\n"
                      : text;
}

}  // namespace

std::string verdict(const Json& summary) {
  const Json& status = at(summary, {"status"});
  const Json& expectations = at(summary, {"expect"});
  const bool expects = expectations.is_array() && !expectations.empty();
  if (at(summary, {"members"}).is_object()) return sweep_verdict(summary);
  if (status == "failed") return "<p class=\"verdict bad\">The run failed." + failed_dynamics(summary) + "</p>\n";
  if (status == "interrupted") {
    return "<p class=\"verdict bad\">The run was interrupted; the page shows what there was.</p>\n";
  }
  if (!expects && at(summary, {"checks"}).is_array()) return check_sentence(at(summary, {"checks"}));
  if (!expects) return "<p class=\"verdict\">The experiment states no expectation ([expect]) to be checked.</p>\n";
  return expectation_sentence(expectations) + expectation_table(expectations);
}

std::string problem_section(const Json& summary) {
  const Json& problem = at(summary, {"problem"});
  if (!problem.is_object()) return "";
  Table table("", {"quantity", "symbol", "value", "meaning"});
  for (const auto& [key, value] : problem.items()) {
    const Quantity* known = find_quantity(key);
    table.row({"<code>" + escaped(key) + "</code>", known != nullptr ? known->symbol : "", shown(value),
               known != nullptr ? known->meaning : ""});
  }
  if (table.empty()) return "";
  return "<h2>Problem</h2>\n" + table.html();
}

}  // namespace iclflow::page
