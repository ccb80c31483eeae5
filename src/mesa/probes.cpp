#include "iclflow/mesa/probes.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/mesa/training.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;
using Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr std::size_t chunk = 256;  ///< sequences that are run at a time

/// Least squares with a constant, from sums over sequences: moments of the inputs about their mean, and with the
/// target.
class Decoder {
 public:
  Decoder(Eigen::Index inputs, Eigen::Index outputs)
      : square_(MatrixXd::Zero(inputs, inputs)),
        cross_(MatrixXd::Zero(outputs, inputs)),
        input_(Vector::Zero(inputs)),
        output_(Vector::Zero(outputs)) {}

  void add(const Vector& input, const Vector& output) {
    square_.selfadjointView<Eigen::Lower>().rankUpdate(input);
    cross_.noalias() += output * input.transpose();
    input_ += input;
    output_ += output;
    count_ += 1.0;
  }
  /// W = C_yx (C_xx + ridge tr(C_xx) / D)^-1, prediction mean_y + W (x - mean_x)          theory: eq:linear-probe
  void fit(double ridge) {
    input_ /= count_;
    output_ /= count_;
    MatrixXd square = square_.selfadjointView<Eigen::Lower>();
    square = square / count_ - input_ * input_.transpose();
    cross_ = cross_ / count_ - output_ * input_.transpose();
    const double mean_square = square.trace() / static_cast<double>(square.rows());
    square.diagonal().array() += mean_square > 0.0 ? ridge * mean_square : 1.0;
    weights_ = square.llt().solve(cross_.transpose()).transpose();
  }
  [[nodiscard]] Vector operator()(const Vector& input) const { return output_ + weights_ * (input - input_); }
  [[nodiscard]] const Vector& constant() const { return output_; }

 private:
  MatrixXd square_;
  MatrixXd cross_;
  Vector input_;
  Vector output_;
  MatrixXd weights_;
  double count_ = 0.0;
};

/// Half the squared errors, one per sequence.
struct Score {
  std::vector<double> losses;

  void add(const Vector& error) { losses.push_back(0.5 * error.squaredNorm()); }
  [[nodiscard]] Estimate mean() const { return mean_estimate(losses); }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = losses;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

void put(Json& json, const Score& score) {
  json["loss"].push_back(score.mean().value);
  json["standard_error"].push_back(score.mean().standard_error.value());
  json["median"].push_back(score.median());
}
void put_constant(Json& json, const Score& score) {
  json["constant_loss"].push_back(score.mean().value);
  json["constant_median"].push_back(score.median());
}
Json empty_scores() {
  Json json;
  for (const char* key : {"loss", "standard_error", "median", "constant_loss", "constant_median"})
    json[key] = Json::array();
  return json;
}

/// (M_t + I / lambda)^-1 s_t, M_t = S_{t-1} S_{t-1}^T                            theory: eq:preconditioned-input
Vector preconditioned_input(const SequenceSet& set, std::size_t sequence, int t, double lambda) {
  const Eigen::Index n = set.dimension;
  MatrixXd moment = MatrixXd::Identity(n, n) / lambda;
  for (int past = 0; past + 1 < t; ++past) {
    moment.selfadjointView<Eigen::Lower>().rankUpdate(Eigen::Map<const Vector>(set.state(sequence, past), n));
  }
  return moment.selfadjointView<Eigen::Lower>().llt().solve(Eigen::Map<const Vector>(set.state(sequence, t - 1), n));
}

/// The first layers of a stack, for the residual stream after them.
class Lower {
 public:
  /// A stack on constructed tokens forms no more of its last layer than the prediction, so that a layer of zero weights
  /// is put on top.
  Lower(const StackShape& shape, const Vector& parameters, std::size_t layers, int threads)
      : layer_(static_cast<int>(layers)) {
    const StackLayout whole = StackLayout::of(shape);
    const bool raw = shape.tokens == TokenKind::raw;
    StackShape lower = shape;
    lower.layers.resize(raw ? std::max<std::size_t>(layers, 1) : layers);
    const std::size_t kept = lower.layers.size();
    if (!raw) lower.layers.push_back(LayerKind::linear);
    const Eigen::Index end = kept < whole.layers.size() ? whole.layers[kept].query : (raw ? whole.readout : whole.size);
    model_ = make_stack(lower, StackPrecision::double_precision, threads);
    parameters_ = Vector::Zero(model_->layout().size);
    parameters_.head(end) = parameters.head(end);
  }
  [[nodiscard]] std::vector<double> stream(const StackBatch& batch) const {
    return model_->stream(parameters_, batch, layer_);
  }

 private:
  int layer_;
  std::unique_ptr<Stack> model_;
  Vector parameters_;
};

/// One thing to be decoded: where in the stream, and the target.
struct Task {
  int layer;
  int t;  ///< context length
  std::function<Vector(const SequenceSet&, std::size_t sequence)> target;
  Decoder decoder;
  Score score{};
  Score constant{};
};

class Runner {
 public:
  Runner(const SequenceProblem& problem, const std::vector<Lower>& lower, std::size_t width, const ProbePlan& plan,
         const std::function<bool()>& interrupted)
      : problem_(problem), lower_(lower), width_(width), plan_(plan), interrupted_(interrupted) {}

  /// Fits on the first plan.sequences, scores on the next. False when interrupted.
  bool run(std::vector<Task>& tasks) const {
    const auto fit = [](Task& task, const Vector& input, const Vector& target) { task.decoder.add(input, target); };
    const auto score = [](Task& task, const Vector& input, const Vector& target) {
      task.score.add(target - task.decoder(input));
      task.constant.add(target - task.decoder.constant());
    };
    if (!pass(0, tasks, fit)) return false;
    for (Task& task : tasks) task.decoder.fit(plan_.ridge);
    return pass(plan_.sequences, tasks, score);
  }

 private:
  template <typename Use>
  bool pass(std::size_t first, std::vector<Task>& tasks, const Use& use) const {
    for (std::size_t done = 0; done < plan_.sequences; done += chunk) {
      if (interrupted_ && interrupted_()) return false;
      const std::size_t count = std::min(chunk, plan_.sequences - done);
      const SequenceSet set = draw_sequences(problem_, plan_.seed, Stream::probes, 0, first + done, count);
      const StackBatch batch = batch_of(set);
      for (std::size_t layer = 0; layer < lower_.size(); ++layer) {
        const std::vector<double> stream = lower_[layer].stream(batch);
        for (Task& task : tasks) {
          if (static_cast<std::size_t>(task.layer) == layer) visit(task, set, stream, use);
        }
      }
    }
    return true;
  }
  template <typename Use>
  void visit(Task& task, const SequenceSet& set, const std::vector<double>& stream, const Use& use) const {
    const auto length = static_cast<std::size_t>(set.length);
    for (std::size_t k = 0; k < set.count; ++k) {
      const double* const at = stream.data() + (k * length + static_cast<std::size_t>(task.t - 1)) * width_;
      use(task, Eigen::Map<const Vector>(at, static_cast<Eigen::Index>(width_)), task.target(set, k));
    }
  }

  const SequenceProblem& problem_;
  const std::vector<Lower>& lower_;
  std::size_t width_;
  const ProbePlan& plan_;
  const std::function<bool()>& interrupted_;
};

Json by_layer(const std::vector<Task>& tasks, std::size_t begin, std::size_t layers, std::size_t positions) {
  Json json = empty_scores();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Json row = empty_scores();
    for (std::size_t k = 0; k < positions; ++k) {
      const Task& task = tasks[begin + layer * positions + k];
      put(row, task.score);
      if (layer == 0) put_constant(json, task.constant);
    }
    for (const char* key : {"loss", "standard_error", "median"}) json[key].push_back(row[key]);
  }
  return json;
}

/// |d f^(1)_T / d s_t'|, Frobenius, mean over sequences, by central differences.       theory: eq:token-sensitivity
Json sensitivity(const SequenceProblem& problem, const Lower& lower, std::size_t width, const ProbePlan& plan,
                 const std::function<bool()>& interrupted) {
  constexpr double step = 1e-5;  // truncation step^2, rounding 1e-16 / step: both about 1e-10
  const auto length = static_cast<std::size_t>(problem.length);
  const auto n = static_cast<std::size_t>(problem.state_dimension);
  const StackBatch batch =
      batch_of(draw_sequences(problem, plan.seed, Stream::probes, 1, 0, plan.sensitivity_sequences));
  Json positions = Json::array();
  Json norms = Json::array();
  for (std::size_t t = 0; t < length; ++t) {
    if (interrupted && interrupted()) return nullptr;
    std::vector<double> squares(batch.count, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      StackBatch moved = batch;
      std::vector<std::vector<double>> ends;
      for (const double sign : {1.0, -1.0}) {
        for (std::size_t k = 0; k < batch.count; ++k) {
          const std::size_t at = (k * length + t) * n + i;
          moved.inputs[at] = batch.inputs[at] + sign * step;
        }
        ends.push_back(lower.stream(moved));
      }
      for (std::size_t k = 0; k < batch.count; ++k) {
        const std::size_t last = (k * length + length - 1) * width;
        for (std::size_t j = last; j < last + width; ++j) {
          const double slope = (ends[0][j] - ends[1][j]) / (2.0 * step);
          squares[k] += slope * slope;
        }
      }
    }
    double mean = 0.0;
    for (const double square : squares) mean += std::sqrt(square) / static_cast<double>(batch.count);
    positions.push_back(t + 1);
    norms.push_back(mean);
  }
  return {{"positions", positions}, {"norm", norms}};
}

std::vector<Task> decoding_tasks(const SequenceProblem& problem, const StackShape& shape, const ProbePlan& plan) {
  const Eigen::Index n = problem.state_dimension;
  const auto layers = static_cast<int>(shape.layers.size());
  const Decoder decoder(shape.width, n);
  std::vector<Task> tasks;
  for (int layer = 0; layer <= layers; ++layer) {
    for (const int t : plan.positions) {
      tasks.push_back({layer, t,
                       [t, n](const SequenceSet& set, std::size_t k) {
                         return Vector(Eigen::Map<const Vector>(set.state(k, t), n));
                       },
                       decoder});
    }
  }
  for (int layer = 0; layer <= layers; ++layer) {
    for (const int t : plan.positions) {
      const double lambda = plan.lambda;
      tasks.push_back(
          {layer, t,
           [t, lambda](const SequenceSet& set, std::size_t k) { return preconditioned_input(set, k, t, lambda); },
           decoder});
    }
  }
  for (int past = problem.length - plan.past + 1; past <= problem.length; ++past) {
    tasks.push_back({1, problem.length,
                     [past, n](const SequenceSet& set, std::size_t k) {
                       return Vector(Eigen::Map<const Vector>(set.state(k, past - 1), n));
                     },
                     decoder});
  }
  return tasks;
}

Json past_json(const std::vector<Task>& tasks, std::size_t begin, int first) {
  Json json = empty_scores();
  json["positions"] = Json::array();
  for (std::size_t k = begin; k < tasks.size(); ++k) {
    json["positions"].push_back(first + static_cast<int>(k - begin));
    put(json, tasks[k].score);
    put_constant(json, tasks[k].constant);
  }
  return json;
}

}  // namespace

Json probes(const SequenceProblem& problem, const StackShape& shape, const Vector& parameters, const ProbePlan& plan,
            int threads, const std::function<bool()>& interrupted) {
  const std::size_t layers = shape.layers.size() + 1;
  const auto width = static_cast<std::size_t>(shape.width);
  std::vector<Lower> lower;
  for (std::size_t layer = 0; layer < layers; ++layer) lower.emplace_back(shape, parameters, layer, threads);
  std::vector<Task> tasks = decoding_tasks(problem, shape, plan);
  if (!Runner(problem, lower, width, plan, interrupted).run(tasks)) return nullptr;
  const std::size_t half = layers * plan.positions.size();
  Json json{{"lambda", plan.lambda},
            {"sequences", plan.sequences},
            {"positions", plan.positions},
            {"next_state", by_layer(tasks, 0, layers, plan.positions.size())},
            {"preconditioned_input", by_layer(tasks, half, layers, plan.positions.size())}};
  if (plan.past > 0) json["past_tokens"] = past_json(tasks, 2 * half, problem.length - plan.past + 1);
  if (plan.sensitivity_sequences > 0) {
    json["sensitivity"] = sensitivity(problem, lower[1], width, plan, interrupted);
    if (json["sensitivity"].is_null()) return nullptr;
  }
  return json;
}

ProbesFigure probes_figure(const Json& probes, const std::string& title) {
  ProbesFigure figure;
  figure.title = title;
  const auto positions = probes.at("positions").get<std::vector<int>>();
  for (const auto& [key, name] :
       {std::pair("next_state", "next state"), std::pair("preconditioned_input", "preconditioned input")}) {
    ProbePanel panel{name, {}};
    const Json& found = probes.at(key);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      Curve curve{fmt::format("t = {}", positions[k]), {}, {}, {}};
      for (const Json& layer : found.at("median")) {
        curve.times.push_back(static_cast<double>(curve.times.size()));
        curve.values.push_back(layer[k].get<double>() / found.at("constant_median")[k].get<double>());
      }
      panel.curves.push_back(std::move(curve));
    }
    figure.by_layer.push_back(std::move(panel));
  }
  if (const auto past = probes.find("past_tokens"); past != probes.end()) {
    Curve curve{
        "", past->at("positions").get<std::vector<double>>(), past->at("median").get<std::vector<double>>(), {}};
    for (std::size_t k = 0; k < curve.values.size(); ++k) {
      curve.values[k] /= past->at("constant_median")[k].get<double>();
    }
    figure.past_error = {"past tokens, from the last position after layer 1", {std::move(curve)}};
  }
  if (const auto found = probes.find("sensitivity"); found != probes.end()) {
    figure.past_sensitivity = {
        "sensitivity of the last position after layer 1",
        {{"", found->at("positions").get<std::vector<double>>(), found->at("norm").get<std::vector<double>>(), {}}}};
  }
  return figure;
}

}  // namespace iclflow
