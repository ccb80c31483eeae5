#include "iclflow/regression/prediction.hpp"

#include <fmt/format.h>

#include <numbers>

#include "iclflow/spectral/attention_moment.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/stability.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Json warm_up_json(const Problem& problem, const InitialState& start) {
  Json tasks = Json::array();
  for (const auto& warm_up : warm_up_times(problem, start)) {
    if (!warm_up) {
      tasks.push_back(nullptr);
      continue;
    }
    Json task = {
        {"head", warm_up->head}, {"warm_up_end", warm_up->warm_up_end}, {"emergence_time", warm_up->emergence_time}};
    task["emergence_end"] = warm_up->emergence_end ? Json(*warm_up->emergence_end) : Json(nullptr);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

/// E|p|^2 of every head at the start, for scores of variance a = |omega^h|^2 (the mean of |W q|^2).
Json attention_moments(const Problem& problem, const InitialState& start) {
  constexpr double largest_variance = 40.0;  // of the quadrature
  Json heads = Json::array();
  for (int h = 0; h < problem.heads; ++h) {
    const double variance = start.omega.row(h).squaredNorm();
    if (h > 0 && heads.back().at("score_variance") == variance) {  // the quadrature is the cost here
      heads.push_back(heads.back());
      continue;
    }
    Json head = {{"score_variance", variance}, {"exact", nullptr}, {"exponential", nullptr}, {"saturated", nullptr}};
    if (variance <= largest_variance) {
      head["exact"] = attention_moment(variance, problem.context_length);
      head["exponential"] = exponential_moment(variance, problem.context_length);
      head["saturated"] = saturated_moment(variance, problem.context_length);
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

std::string line(std::string_view name, const std::string& value, std::string_view meaning) {
  return fmt::format("  {:<20} {:<28} {}\n", name, value, meaning);
}

std::string shown(double value) { return fmt::format("{:.6g}", value); }

std::string shown(const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < 4; ++i) text += (i > 0 ? ", " : "") + shown(values[i]);
  return values.size() > 4 ? text + ", ..." : text;
}

std::string limits_text(const Problem& problem) {
  std::string text = "limits (coefficient kappa: a task's loss is (P/2) x/(1 + x), x = kappa phi d_i / L)\n";
  if (const auto limit = dedicated_limit(problem)) {
    text += line("dedicated loss", shown(limit->loss), "one head per task, where the balanced flow ends");
    text += line("dedicated mu", shown(limit->mu), "output-value entry of each task's own head");
    text += line("dedicated omega", shown(limit->omega), "key-query entry of each task's own head on its block");
  } else {
    text += line("dedicated", "none", "fewer heads than tasks");
  }
  const SingleHead single = best_single_head(problem);
  text += line("single head loss", shown(single.loss), "the best one head can do on all tasks");
  text += line("single head kappa", shown(single.coefficient), "e I for equal tasks");
  text += line("single / dedicated", shown(single.coefficient / std::numbers::e), "ratio of the coefficients");
  const auto best = best_coefficient(problem);
  text += line("best kappa", best ? shown(*best) : "none", best ? "the best these heads can do" : "tasks are unequal");
  if (const auto pair = opposite_pair(problem)) {
    text += line("pair loss", shown(pair->loss), "two opposite heads, de-biased gradient descent (infimum)");
  }
  return text;
}

std::string baselines_text(const Problem& problem) {
  std::string text = "baselines\n";
  text += line("ridge loss", shown(ridge_loss(problem)), "Bayes-optimal ridge per block, asymptotic in d");
  text +=
      line("gradient step loss", shown(gradient_step_loss(problem)), "one gradient step per block at its best rate");
  return text;
}

std::string warm_up_text(const Problem& problem, const InitialState& start) {
  std::string text = "emergence (times at which 5 %, 50 %, 95 % of a task's loss above its limit are gone)\n";
  const auto tasks = warm_up_times(problem, start);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string name = fmt::format("task {}", i);
    if (!tasks[i]) {
      text += line(name, "none", "the formulas do not cover this start");
      continue;
    }
    const WarmUp& times = *tasks[i];
    const std::string end = times.emergence_end ? fmt::format("{:.5g}", *times.emergence_end) : "not reached";
    text += line(name, fmt::format("{:.5g}, {:.5g}, {}", times.warm_up_end, times.emergence_time, end),
                 fmt::format("by head {}", times.head));
  }
  return text;
}

}  // namespace

Json prediction_json(const Problem& problem, const InitialState& start) {
  Json json;
  json["dedicated"] = nullptr;
  if (const auto limit = dedicated_limit(problem)) {
    json["dedicated"] = {{"loss", limit->loss}, {"mu", limit->mu}, {"omega", limit->omega}};
  }
  const SingleHead single = best_single_head(problem);
  json["single_head"] = {{"loss", single.loss}, {"coefficient", single.coefficient}};
  json["best"] = nullptr;
  if (const auto best = best_coefficient(problem)) json["best"] = {{"coefficient", *best}};
  // kappa of the dedicated heads is e                                     theory: eq:dedicated-limit
  json["single_to_dedicated"] = single.coefficient / std::numbers::e;
  // Of tasks that share it; noise multiplies every coefficient by it.
  json["noise_factor"] = nullptr;
  if (best_coefficient(problem)) json["noise_factor"] = problem.noise_factor(0);
  json["pair"] = nullptr;
  if (const auto pair = opposite_pair(problem)) {
    json["pair"] = {{"loss", pair->loss}, {"coefficient", pair->coefficient}};
  }
  json["ridge"] = {{"loss", ridge_loss(problem)}};
  json["gradient_step"] = {{"loss", gradient_step_loss(problem)}};
  json["warm_up"] = warm_up_json(problem, start);
  json["attention_moment"] = attention_moments(problem, start);
  const auto rate = largest_learning_rate(problem);
  json["largest_learning_rate"] = rate ? Json(*rate) : Json(nullptr);
  return json;
}

std::string prediction_text(const Problem& problem, const InitialState& start) {
  const auto plural = [](int count) { return count == 1 ? "" : "s"; };
  std::string text =
      fmt::format("{} head{}, {} task{} of dimension{} {}, L = {}\n", problem.heads, plural(problem.heads),
                  problem.tasks(), plural(problem.tasks()), plural(problem.tasks()),
                  fmt::join(problem.task_dimensions, ", "), problem.context_length);
  text += "losses: half the squared error, noise-free target, summed over tasks; times: d theta/dt = -grad loss;\n";
  text += "closure: large-context\n\n";
  text += limits_text(problem) + "\n" + baselines_text(problem) + "\n" + warm_up_text(problem, start);
  if (const auto rate = largest_learning_rate(problem)) {
    text += '\n';
    text += line("largest learning rate", shown(*rate),
                 "of SGD at the dedicated limit: keys that read responses; the overshoot before it needs less");
  }
  return text;
}

}  // namespace iclflow
