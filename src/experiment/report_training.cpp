#include "iclflow/experiment/flat_summary.hpp"
#include "report_sections.hpp"

namespace iclflow::page {

namespace {

void add_baseline(Table& table, const std::string& name, const Json& entry, const std::string& number) {
  if (!entry.is_object()) return;
  const Json& clipped = at(entry, {"clipped"});
  table.row({name, number, estimate(at(entry, {"loss"}), at(entry, {"standard_error"})),
             estimate(at(clipped, {"loss"}), at(clipped, {"standard_error"}), clipped.is_object() ? "" : "no clip")});
}

std::string baselines_table(const Json& baselines) {
  Table table("Predictors that learn nothing but the numbers named; clipped: with the model's clip",
              {"baseline", "", "loss", "loss, clipped"});
  add_baseline(table, "zero", at(baselines, {"zero"}), "");
  add_baseline(table, "one gradient step", at(baselines, {"gradient_step"}),
               "<i>η</i> = " + shown(at(baselines, {"gradient_step", "eta"})));
  for (const Json& entry : at(baselines, {"preconditioned"})) {
    add_baseline(table, "preconditioned step", entry,
                 shown(at(entry, {"steps"})) + " steps, <i>λ</i> = " + shown(at(entry, {"lambda"})));
  }
  for (const Json& entry : at(baselines, {"ridge"})) {
    add_baseline(table, "ridge", entry, "<i>λ</i> = " + shown(at(entry, {"lambda"})));
  }
  add_baseline(table, "softmax kernel regression", at(baselines, {"kernel_regression"}),
               "<i>β</i> = " + shown(at(baselines, {"kernel_regression", "beta"})));
  return table.html();
}

/// Every single number of a part, by its path; lists over positions are left to the figures and to summary.json.
std::string numbers_table(const Json& part, const std::string& caption) {
  constexpr std::string_view error_suffix = "_standard_error";
  constexpr std::size_t most_rows = 60;
  const FlatSummary flat = flatten(part);
  Table table(caption, {"quantity", "value"});
  std::size_t rows = 0;
  for (const auto& [path, value] : flat) {
    if (path.ends_with(error_suffix) || path.find("positions") != std::string::npos) continue;
    if (++rows > most_rows) break;
    Json error = nullptr;
    for (const auto& [other, spread] : flat) {
      if (other == path + std::string(error_suffix)) error = spread;
    }
    table.row({"<code>" + escaped(path) + "</code>", estimate(value, error)});
  }
  const std::string rest = rows > most_rows ? "<p>The rest stands in summary.json.</p>\n" : "";
  return table.html() + rest;
}

}  // namespace

std::string training_section(const Json& summary) {
  if (!at(summary, {"training"}).is_array()) return "";
  Table table("Loss of the finished weights on the evaluation set, mean over the seeds", {"quantity", "value"});
  table.row({"final loss", estimate(at(summary, {"final_loss"}), at(summary, {"final_loss_standard_error"}))});
  table.row({"loss of predicting 0, same set", estimate(at(summary, {"final", "evaluation_zero_loss"}), nullptr)});
  table.row({"gradients", shown(at(summary, {"gradients"}))});
  table.row({"wall time (s)", shown(at(summary, {"wall_seconds"}))});
  std::string text = "<h2>Training</h2>\n" + table.html();
  const Json& baselines = at(summary, {"baselines"});
  if (baselines.is_object()) text += "<h2>Baselines</h2>\n" + baselines_table(baselines);
  const std::pair<const char*, const char*> parts[] = {{"one_step", "One layer as one gradient step"},
                                                       {"compressed", "Compression to block means"},
                                                       {"probes", "Probes of the residual stream"},
                                                       {"few_shot", "Few-shot regression without retraining"}};
  for (const auto& [key, heading] : parts) {
    const Json& part = at(summary, {key});
    if (part.is_object()) text += "<h2>" + std::string(heading) + "</h2>\n" + numbers_table(part, "");
  }
  return text;
}

}  // namespace iclflow::page
