#include "iclflow/regression/problem_section.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

namespace iclflow {

namespace {

constexpr std::string_view inverse_sqrt_dimension = "inverse-sqrt-dimension";
constexpr std::string_view inverse_sqrt_embedding = "inverse-sqrt-embedding";
constexpr std::size_t largest_task_count = 4096;

std::string_view response_scale_name(const Problem& p) {
  return p.response_scale == ResponseScale::unit ? "unit" : inverse_sqrt_dimension;
}
std::string_view score_scale_name(const Problem& p) {
  return p.score_scale == ScoreScale::unit ? "unit" : inverse_sqrt_embedding;
}
std::string_view parametrisation_name(const Problem& p) {
  return p.parametrisation == Parametrisation::split ? "split" : "merged";
}
std::string_view rotation_name(const Problem& p) { return p.rotation == Rotation::identity ? "identity" : "random"; }

void read_sizes(const Section& section, Problem& problem) {
  problem.heads = static_cast<int>(section.integer("heads", 1, 4096));
  problem.task_dimensions.clear();
  for (const std::int64_t size : section.integers("task_dimensions", 1, 65536, largest_task_count)) {
    problem.task_dimensions.push_back(static_cast<int>(size));
  }
  problem.context_length = static_cast<int>(section.integer("context_length", 1, 16'777'216));
}

void read_variances(const Section& section, Problem& problem) {
  problem.noise_variance = section.number("noise_variance", Sign::non_negative, 0.0);
  const std::size_t tasks = problem.task_dimensions.size();
  if (section.kind("signal_variance") == Value::Kind::array) {
    problem.signal_variance = section.numbers("signal_variance", Sign::positive);
    if (problem.signal_variance.size() != tasks) {
      section.fail("signal_variance", fmt::format("wrong shape ({} entries)", problem.signal_variance.size()),
                   fmt::format("one number, or {}, one per task", tasks));
    }
  } else {
    problem.signal_variance.assign(tasks, section.number("signal_variance", Sign::positive, 1.0));
  }
}

void read_scales(const Section& section, Problem& problem) {
  const std::string response =
      section.choice("response_scale", {{inverse_sqrt_dimension, "unit"}}, std::string(inverse_sqrt_dimension));
  problem.response_scale = response == "unit" ? ResponseScale::unit : ResponseScale::inverse_sqrt_dimension;
  const bool split = section.choice("parametrisation", {{"split", "merged"}}, "split") == "split";
  problem.parametrisation = split ? Parametrisation::split : Parametrisation::merged;
  if (split) {
    const std::string score = section.choice("score_scale", {{"unit", inverse_sqrt_embedding}}, "unit");
    problem.score_scale = score == "unit" ? ScoreScale::unit : ScoreScale::inverse_sqrt_embedding;
  } else if (section.has("score_scale")) {
    section.fail("score_scale", "belongs to the split parametrisation only",
                 "no score_scale, or parametrisation = \"split\"");
  }
  const bool rotated = section.choice("rotation", {{"identity", "random"}}, "identity") == "random";
  problem.rotation = rotated ? Rotation::random : Rotation::identity;
  if (rotated) {
    problem.rotation_seed =
        static_cast<std::uint64_t>(section.integer("rotation_seed", 0, std::numeric_limits<std::int64_t>::max(), 0));
  }
}

/// Far outside of this range squares of powers overflow; no problem of interest comes near.
void check_powers(const Section& section, const Problem& problem) {
  constexpr double largest = 1e60;
  for (int i = 0; i < problem.tasks(); ++i) {
    const double power = problem.signal_power(i);
    if (!(power >= 1.0 / largest && power <= largest)) {
      section.fail("signal_variance", fmt::format("impossible value: task {} has the signal power {:.3g}", i, power),
                   fmt::format("numbers that give powers from {} to {}", 1.0 / largest, largest));
    }
    if (!(problem.noise_factor(i) <= largest)) {
      section.fail("noise_variance",
                   fmt::format("impossible value ({}): {:.3g} times the signal power of task {}",
                               problem.noise_variance, problem.noise_factor(i), i),
                   fmt::format("at most {} times the signal power of each task", largest));
    }
  }
}

}  // namespace

Problem read_problem(const Section& section) {
  Problem problem;
  read_sizes(section, problem);
  read_variances(section, problem);
  read_scales(section, problem);
  static_cast<void>(section.choice("attention", {{"softmax", "linear"}}, "softmax"));  // linear is not read here
  section.finish();
  try {
    validate(problem);
  } catch (const std::invalid_argument& error) {
    section.fail("task_dimensions", error.what());
  }
  check_powers(section, problem);
  return problem;
}

void resolve_problem(const Problem& problem, TomlText& text) {
  text.table("problem");
  text.put("attention", "softmax");
  text.put("heads", problem.heads);
  text.put("task_dimensions", problem.task_dimensions);
  text.put("context_length", problem.context_length);
  text.put("noise_variance", problem.noise_variance);
  text.put("signal_variance", problem.signal_variance);
  text.put("response_scale", response_scale_name(problem));
  text.put("parametrisation", parametrisation_name(problem));
  if (problem.parametrisation == Parametrisation::split) text.put("score_scale", score_scale_name(problem));
  text.put("rotation", rotation_name(problem));
  if (problem.rotation == Rotation::random) text.put("rotation_seed", problem.rotation_seed);
}

nlohmann::ordered_json problem_json(const Problem& problem) {
  nlohmann::ordered_json json;
  json["heads"] = problem.heads;
  json["tasks"] = problem.tasks();
  json["task_dimensions"] = problem.task_dimensions;
  json["dimension"] = problem.dimension();
  json["context_length"] = problem.context_length;
  json["noise_variance"] = problem.noise_variance;
  json["signal_variance"] = problem.signal_variance;
  json["response_scale"] = response_scale_name(problem);
  json["response_factor"] = problem.response_factor();
  json["parametrisation"] = parametrisation_name(problem);
  json["score_scale"] = score_scale_name(problem);
  json["score_factor"] = problem.score_factor();
  json["rotation"] = rotation_name(problem);
  for (int i = 0; i < problem.tasks(); ++i) {
    json["signal_power"].push_back(problem.signal_power(i));
    json["noise_factor"].push_back(problem.noise_factor(i));
  }
  return json;
}

}  // namespace iclflow
