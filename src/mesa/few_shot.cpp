#include "iclflow/mesa/few_shot.hpp"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <utility>

#include "iclflow/integrate/adam.hpp"
#include "iclflow/problem/rotation.hpp"
#include "iclflow/random/stream.hpp"

namespace iclflow {

using Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t scored = 0;  ///< number of the draw that scores; steps of prompts count from 1
constexpr std::size_t chunk = 256;   ///< sequences that are scored at a time

Eigen::Map<const Vector> vector(const std::vector<double>& values, std::size_t index, int n) {
  return {values.data() + index * static_cast<std::size_t>(n), n};
}

/// Where things stand in the model's sequence.
struct Places {
  std::size_t prefix;
  std::size_t stride;  ///< tokens of a pair
  std::size_t count;   ///< pairs
  [[nodiscard]] std::size_t length() const { return prefix + stride * count; }
  [[nodiscard]] std::size_t question(std::size_t pair) const { return prefix + stride * pair; }

  static Places of(const PairSet& pairs, const Prompt& prompt) {
    return {static_cast<std::size_t>(prompt.prefix.cols()), 2U + static_cast<std::size_t>(prompt.eos.cols()),
            static_cast<std::size_t>(pairs.tasks * pairs.pairs)};
  }
};

/// Sequences first .. of a set.
PairSet piece(const PairSet& pairs, std::size_t first, std::size_t count) {
  PairSet part = pairs;
  part.count = std::min(count, pairs.count - first);
  const std::size_t row = static_cast<std::size_t>(pairs.tasks * pairs.pairs * pairs.dimension);
  const auto cut = [&](const std::vector<double>& from) {
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first * row);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(part.count * row));
  };
  part.x = cut(pairs.x);
  part.y = cut(pairs.y);
  return part;
}

/// Mean and standard error over sequences of each answer's loss.
Json score(Stack& model, const Vector& parameters, const PairSet& pairs, const Prompt& prompt) {
  const Places places = Places::of(pairs, prompt);
  const auto n = static_cast<std::size_t>(pairs.dimension);
  std::vector<double> sum(places.count, 0.0);
  std::vector<double> squares(places.count, 0.0);
  for (std::size_t first = 0; first < pairs.count; first += chunk) {
    const PairSet part = piece(pairs, first, chunk);
    const StackBatch batch = prompted(part, prompt);
    const std::vector<double> f = model.predictions(parameters, batch);
    for (std::size_t k = 0; k < part.count; ++k) {
      for (std::size_t i = 0; i < places.count; ++i) {
        const std::size_t at = (k * places.length() + places.question(i)) * n;
        double loss = 0.0;
        for (std::size_t j = at; j < at + n; ++j) loss += 0.5 * (batch.targets[j] - f[j]) * (batch.targets[j] - f[j]);
        sum[i] += loss;
        squares[i] += loss * loss;
      }
    }
  }
  Json json{{"loss", Json::array()}, {"standard_error", Json::array()}, {"mean_loss", 0.0}};
  const auto count = static_cast<double>(pairs.count);
  double mean_loss = 0.0;
  for (std::size_t i = 0; i < places.count; ++i) {
    const double mean = sum[i] / count;
    json["loss"].push_back(mean);
    json["standard_error"].push_back(std::sqrt(std::max(0.0, squares[i] / count - mean * mean) / (count - 1.0)));
    mean_loss += mean / static_cast<double>(places.count);
  }
  json["mean_loss"] = mean_loss;
  return json;
}

/// Adam on the prompt's tokens as one vector: prefix, then eos.
class PromptTraining {
 public:
  PromptTraining(Stack& model, const Vector& parameters, const FewShotPlan& plan, std::uint32_t first_draw)
      : model_(model), parameters_(parameters), plan_(plan), first_draw_(first_draw) {}

  /// Changes the prompt; false when interrupted.
  bool operator()(Prompt& prompt, double learning_rate, Json& curve, const std::function<bool()>& interrupted) const {
    AdamOptions options;
    options.rate.peak = learning_rate;
    AdamRule rule(options);
    curve = Json::array();
    Vector theta = flat(prompt);
    Vector next(theta.size());
    Prompt gradient;
    const std::uint64_t every = std::max<std::uint64_t>(1, plan_.steps / 20);
    for (std::uint64_t step = 0; step < plan_.steps; ++step) {
      if (interrupted && interrupted()) return false;
      const PairSet pairs =
          draw_pairs(plan_, model_.shape().state_dimension, 1, first_draw_ + static_cast<std::uint32_t>(step),
                     static_cast<std::size_t>(plan_.batch));
      const double loss = prompt_gradient(model_, parameters_, pairs, prompt, gradient);
      if (step % every == 0) curve.push_back({{"step", step}, {"loss", loss}});
      rule.advance(step, theta, flat(gradient), next);
      theta = next;
      prompt.prefix.reshaped() = theta.head(prompt.prefix.size());
      prompt.eos.reshaped() = theta.tail(prompt.eos.size());
    }
    return true;
  }

 private:
  static Vector flat(const Prompt& prompt) {
    Vector theta(prompt.prefix.size() + prompt.eos.size());
    theta.head(prompt.prefix.size()) = prompt.prefix.reshaped();
    theta.tail(prompt.eos.size()) = prompt.eos.reshaped();
    return theta;
  }

  Stack& model_;
  const Vector& parameters_;
  const FewShotPlan& plan_;
  std::uint32_t first_draw_;
};

struct Prompts {
  std::vector<std::pair<std::string, Prompt>> all;
  Json curves = Json::object();
};

/// Tokens ~ N(0, initial_deviation^2 I).
MatrixXd random_tokens(const FewShotPlan& plan, Eigen::Index n, int count, std::uint32_t which) {
  NormalStream normal({plan.seed, Stream::few_shot, 0xFFFFFFFFU, which});
  MatrixXd tokens(n, count);
  for (double& entry : tokens.reshaped()) entry = plan.initial_deviation * normal();
  return tokens;
}

bool learn(Stack& model, const Vector& parameters, const FewShotPlan& plan, Prompts& prompts,
           const std::function<bool()>& interrupted) {
  const Eigen::Index n = model.shape().state_dimension;
  Prompt prompt{MatrixXd(n, 0), MatrixXd(n, 0)};
  prompts.all.emplace_back("TF", prompt);
  if (plan.steps == 0) return true;
  prompt.eos = random_tokens(plan, n, 1, 0);
  const PromptTraining eos(model, parameters, plan, scored + 1);
  if (!eos(prompt, plan.learning_rate_eos, prompts.curves["TF+EOS"], interrupted)) return false;
  prompts.all.emplace_back("TF+EOS", prompt);
  if (plan.prefix == 0) return true;
  prompt.prefix = random_tokens(plan, n, plan.prefix, 1);
  const PromptTraining both(model, parameters, plan, scored + 1 + static_cast<std::uint32_t>(plan.steps));
  if (!both(prompt, plan.learning_rate_prefix, prompts.curves["TF+EOS+P"], interrupted)) return false;
  prompts.all.emplace_back("TF+EOS+P", prompt);
  return true;
}

Json columns(const MatrixXd& tokens) {
  Json json = Json::array();
  for (Eigen::Index j = 0; j < tokens.cols(); ++j) {
    json.push_back(std::vector<double>(tokens.col(j).begin(), tokens.col(j).end()));
  }
  return json;
}

}  // namespace

PairSet draw_pairs(const FewShotPlan& plan, int dimension, int tasks, std::uint32_t step, std::size_t count) {
  PairSet set{count, plan.pairs, tasks, dimension, {}, {}};
  const auto n = static_cast<std::size_t>(dimension);
  set.x.resize(count * static_cast<std::size_t>(tasks * plan.pairs) * n);
  set.y.resize(set.x.size());
  double* x = set.x.data();
  double* y = set.y.data();
  for (std::size_t k = 0; k < count; ++k) {
    NormalStream normal({plan.seed, Stream::few_shot, step, static_cast<std::uint32_t>(k)});
    for (int task = 0; task < tasks; ++task) {
      const MatrixXd w = random_orthogonal(normal, dimension);
      for (int i = 0; i < plan.pairs; ++i, x += n, y += n) {
        Eigen::Map<Vector> question(x, dimension);
        for (double& entry : question) entry = normal();
        if (plan.inputs == InitialLaw::uniform) {
          for (double& entry : question) entry = std::erf(entry / std::numbers::sqrt2);
        }
        Eigen::Map<Vector>(y, dimension) = w * question;
      }
    }
  }
  return set;
}

StackBatch prompted(const PairSet& pairs, const Prompt& prompt) {
  const Places places = Places::of(pairs, prompt);
  const auto n = static_cast<std::size_t>(pairs.dimension);
  StackBatch batch;
  batch.count = pairs.count;
  batch.length = static_cast<int>(places.length());
  batch.inputs.reserve(pairs.count * places.length() * n);
  batch.targets.assign(pairs.count * places.length() * n, 0.0);
  batch.position_weights.assign(places.length(), 0.0);
  const auto put = [&](const double* values, Eigen::Index count) {
    batch.inputs.insert(batch.inputs.end(), values, values + count);
  };
  for (std::size_t k = 0; k < pairs.count; ++k) {
    put(prompt.prefix.data(), prompt.prefix.size());
    for (std::size_t i = 0; i < places.count; ++i) {
      const std::size_t pair = (k * places.count + i) * n;
      put(pairs.x.data() + pair, pairs.dimension);
      put(pairs.y.data() + pair, pairs.dimension);
      put(prompt.eos.data(), prompt.eos.size());
      const std::size_t at = (k * places.length() + places.question(i)) * n;
      std::copy_n(pairs.y.data() + pair, n, batch.targets.data() + at);
      batch.position_weights[places.question(i)] = 1.0 / static_cast<double>(places.count);
    }
  }
  return batch;
}

double prompt_gradient(Stack& model, const Vector& parameters, const PairSet& pairs, const Prompt& prompt,
                       Prompt& gradient) {
  const Places places = Places::of(pairs, prompt);
  const StackBatch batch = prompted(pairs, prompt);
  Vector unused;
  std::vector<double> by_input;
  const double loss = model.gradient(parameters, batch, unused, &by_input);
  gradient.prefix.setZero(prompt.prefix.rows(), prompt.prefix.cols());
  gradient.eos.setZero(prompt.eos.rows(), prompt.eos.cols());
  for (std::size_t k = 0; k < pairs.count; ++k) {
    const auto slope = [&](std::size_t t) { return vector(by_input, k * places.length() + t, pairs.dimension); };
    for (std::size_t t = 0; t < places.prefix; ++t) gradient.prefix.col(static_cast<Eigen::Index>(t)) += slope(t);
    if (prompt.eos.cols() == 0) continue;
    for (std::size_t i = 0; i < places.count; ++i) gradient.eos.col(0) += slope(places.question(i) + 2);
  }
  return loss;
}

std::vector<double> least_squares_losses(const PairSet& pairs, double lambda, bool spurious) {
  const auto count = static_cast<std::size_t>(pairs.tasks * pairs.pairs);
  const int n = pairs.dimension;
  std::vector<double> losses(count, 0.0);
  for (std::size_t k = 0; k < pairs.count; ++k) {
    // W^ = (sum b a^T)(sum a a^T + I / lambda)^-1 over the pairs (a, b)                 theory: eq:few-shot-control
    MatrixXd square = MatrixXd::Identity(n, n) / lambda;
    MatrixXd cross = MatrixXd::Zero(n, n);
    const auto learn = [&](const auto& a, const auto& b) {
      square.selfadjointView<Eigen::Lower>().rankUpdate(a);
      cross.noalias() += b * a.transpose();
    };
    for (std::size_t i = 0; i < count; ++i) {
      const auto x = vector(pairs.x, k * count + i, n);
      const auto y = vector(pairs.y, k * count + i, n);
      if (spurious && i > 0) learn(vector(pairs.y, k * count + i - 1, n), x);
      const Vector answer = cross * square.selfadjointView<Eigen::Lower>().llt().solve(x);
      losses[i] += 0.5 * (y - answer).squaredNorm() / static_cast<double>(pairs.count);
      learn(x, y);
    }
  }
  return losses;
}

Json few_shot(Stack& model, const Vector& parameters, const FewShotPlan& plan,
              const std::function<bool()>& interrupted) {
  Prompts prompts;
  if (!learn(model, parameters, plan, prompts, interrupted)) return nullptr;
  Json json{{"pairs", plan.pairs}};
  for (const int tasks : {1, 2}) {
    const PairSet pairs = draw_pairs(plan, model.shape().state_dimension, tasks, scored, plan.sequences);
    Json scores{{"models", Json::object()}, {"controls", Json::object()}};
    for (const auto& [name, prompt] : prompts.all) {
      if (interrupted && interrupted()) return nullptr;
      scores["models"][name] = score(model, parameters, pairs, prompt);
    }
    for (const bool spurious : {false, true}) {
      scores["controls"][spurious ? "spurious" : "least_squares"]["loss"] =
          least_squares_losses(pairs, plan.lambda, spurious);
    }
    json[tasks == 1 ? "one_task" : "two_tasks"] = scores;
  }
  json["training"] = prompts.curves;
  json["prompts"] = Json::object();
  for (const auto& [name, prompt] : prompts.all) {
    if (prompt.eos.cols() == 0) continue;
    json["prompts"][name] = {{"eos", columns(prompt.eos)}, {"prefix", columns(prompt.prefix)}};
  }
  return json;
}

FewShotFigure few_shot_figure(const Json& few_shot, const std::string& title) {
  FewShotFigure figure;
  figure.title = title;
  for (const auto& [key, name] : {std::pair("one_task", "one task"), std::pair("two_tasks", "two tasks in a row")}) {
    FewShotPanel panel;
    panel.name = name;
    const auto curve = [](const std::string& label, const Json& scores) {
      Curve result{label, {}, scores.at("loss").get<std::vector<double>>(), {}};
      for (std::size_t i = 0; i < result.values.size(); ++i) result.times.push_back(static_cast<double>(i));
      if (scores.contains("standard_error")) {
        result.standard_error = scores.at("standard_error").get<std::vector<double>>();
      }
      return result;
    };
    for (const auto& [model, scores] : few_shot.at(key).at("models").items()) {
      panel.models.push_back(curve(model, scores));
    }
    for (const auto& [control, label] : {std::pair("least_squares", "least squares on the pairs"),
                                         std::pair("spurious", "least squares, spurious pairs too")}) {
      panel.controls.push_back(curve(label, few_shot.at(key).at("controls").at(control)));
    }
    if (key == std::string("two_tasks")) panel.second_task_at = few_shot.at("pairs").get<double>();
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace iclflow
