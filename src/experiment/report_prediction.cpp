#include "iclflow/experiment/flat_summary.hpp"
#include "report_sections.hpp"

namespace iclflow::page {
namespace {

std::string coefficient_or(const Json& part, std::string_view reason) {
  return estimate(at(part, {"coefficient"}), nullptr, reason);
}

void add_limits(const Json& prediction, Table& table) {
  const Json& dedicated = at(prediction, {"dedicated"});
  const bool enough_heads = dedicated.is_object();
  table.row(
      {"dedicated limit", estimate(at(dedicated, {"loss"}), nullptr, "fewer heads than tasks"),
       enough_heads ? "<i>e</i>" : missing(),
       "one head per task: Σ<sub>i</sub> (<i>P<sub>i</sub></i>/2) <i>x<sub>i</sub></i>/(1 + <i>x<sub>i</sub></i>)"});
  if (at(prediction, {"single_head"}).is_object()) {
    const Json& single = at(prediction, {"single_head"});
    table.row({"best single head", estimate(at(single, {"loss"}), nullptr), coefficient_or(single, ""),
               "minimum over one head on all tasks; <i>κ</i> = <i>e I</i> for equal tasks"});
  }
  table.row({"best, these heads", missing(), coefficient_or(at(prediction, {"best"}), "tasks are unequal"),
             "<i>e I</i> for <i>H</i> = 1, <i>I</i>/(<i>H</i> − 1) up to <i>H</i> = <i>I</i> + 1, then 1"});
  const Json& pair = at(prediction, {"pair"});
  table.row({"opposite pair", estimate(at(pair, {"loss"}), nullptr, "one task and two heads only"),
             pair.is_object() ? coefficient_or(pair, "") : missing(), "de-biased gradient descent; an infimum"});
}

void add_baselines(const Json& prediction, Table& table) {
  if (at(prediction, {"ridge"}).is_object()) {
    table.row({"ridge (Bayes)", estimate(at(prediction, {"ridge", "loss"}), nullptr), missing(),
               "best ridge regression per block, asymptotic in <i>d</i>"});
  }
  if (at(prediction, {"gradient_step"}).is_object()) {
    table.row({"one gradient step", estimate(at(prediction, {"gradient_step", "loss"}), nullptr), missing(),
               "per block at its best rate, exact at every <i>d</i>, <i>L</i>"});
  }
}

std::string dedicated_table(const Json& prediction) {
  const Json& mu = at(prediction, {"dedicated", "mu"});
  const Json& omega = at(prediction, {"dedicated", "omega"});
  const Json& warm_up = at(prediction, {"warm_up"});
  const std::size_t tasks = mu.is_array() ? mu.size() : (warm_up.is_array() ? warm_up.size() : 0);
  Table table(
      "Own head of each task: limit <i>μ<sub>i</sub></i> = √<i>d<sub>i</sub></i>/(1 + <i>x<sub>i</sub></i>), "
      "<i>ω<sub>i</sub></i> = 1/√<i>d<sub>i</sub></i>, and the times at which 5, 50, 95 % of the task's "
      "loss above its limit are gone",
      {"task", "<i>μ</i>", "<i>ω</i>", "head", "<i>t</i><sub>w</sub>", "<i>t</i><sub>0</sub>", "<i>t</i><sub>e</sub>"});
  const auto entry = [](const Json& list, std::size_t k) {
    return list.is_array() && k < list.size() ? estimate(list[k], nullptr) : missing("fewer heads than tasks");
  };
  for (std::size_t i = 0; i < tasks; ++i) {
    const Json times = warm_up.is_array() && i < warm_up.size() ? warm_up[i] : Json(nullptr);
    const std::string head = times.is_object() ? shown(at(times, {"head"})) : missing("no formula for this start");
    table.row({std::to_string(i), entry(mu, i), entry(omega, i), head, estimate(at(times, {"warm_up_end"}), nullptr),
               estimate(at(times, {"emergence_time"}), nullptr),
               estimate(at(times, {"emergence_end"}), nullptr, times.is_object() ? "damped before" : "")});
  }
  return table.html();
}

/// Of systems without tasks: every number by its key.
std::string plain_section(const Json& prediction) {
  Table table("Closed forms and baselines", {"quantity", "value"});
  for (const auto& [path, value] : flatten(prediction))
    table.row({"<code>" + escaped(path) + "</code>", significant(value, 6)});
  return table.empty() ? std::string() : "<h2>Prediction</h2>\n" + table.html();
}

}  // namespace

std::string prediction_section(const Json& summary) {
  const Json& prediction = at(summary, {"prediction"});
  if (!prediction.is_object()) return "";
  if (!prediction.contains("dedicated")) return plain_section(prediction);
  Table table(
      "Closed forms. With <i>x<sub>i</sub></i> = <i>κ φ<sub>i</sub> d<sub>i</sub></i>/<i>L</i> a task's loss is "
      "(<i>P<sub>i</sub></i>/2) <i>x<sub>i</sub></i>/(1 + <i>x<sub>i</sub></i>)",
      {"prediction", "loss ℓ", "<i>κ</i>", "formula"});
  add_limits(prediction, table);
  add_baselines(prediction, table);
  std::string text = "<h2>Prediction</h2>\n<p>Closed forms of the large-context closure.";
  const Json& ratio = at(prediction, {"single_to_dedicated"});
  if (ratio.is_number()) text += " Ratio of the coefficients <i>κ</i>, single head to dedicated: " + shown(ratio) + ".";
  const Json& rate = at(prediction, {"largest_learning_rate"});
  if (rate.is_number()) {
    text += " At the dedicated limit SGD settles only with a learning rate below " + shown(rate) +
            " (keys that read responses); the overshoot before it needs less.";
  }
  return text + "</p>\n" + table.html() + dedicated_table(prediction);
}

}  // namespace iclflow::page
