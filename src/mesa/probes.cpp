#include "iclflow/mesa/probes.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "iclflow/mesa/sequence_batch.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr std::size_t chunk = 256;  ///< sequences that are run at a time

/// Least squares with a constant, from sums over sequences: moments of the inputs about their mean, and with the target.
class Decoder {
 public:
  Decoder(Eigen::Index inputs, Eigen::Index outputs)
      : square_(Matrix::Zero(inputs, inputs)),
        cross_(Matrix::Zero(outputs, inputs)),
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
    Matrix square = square_.selfadjointView<Eigen::Lower>();
    square = square / count_ - input_ * input_.transpose();
    cross_ = cross_ / count_ - output_ * input_.transpose();
    const double mean_square = square.trace() / static_cast<double>(square.rows());
    square.diagonal().array() += mean_square > 0.0 ? ridge * mean_square : 1.0;
    weights_ = square.llt().solve(cross_.transpose()).transpose();
  }
  [[nodiscard]] Vector operator()(const Vector& input) const { return output_ + weights_ * (input - input_); }
  [[nodiscard]] const Vector& constant() const { return output_; }

 private:
  Matrix square_;
  Matrix cross_;
  Vector input_;
  Vector output_;
  Matrix weights_;
  double count_ = 0.0;
};

/// Mean and standard error of half the squared errors.
struct Score {
  double sum = 0.0;
  double squares = 0.0;
  double count = 0.0;

  void add(const Vector& error) {
    const double loss = 0.5 * error.squaredNorm();
    sum += loss;
    squares += loss * loss;
    count += 1.0;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  [[nodiscard]] double standard_error() const {
    return std::sqrt(std::max(0.0, squares / count - mean() * mean()) / (count - 1.0));
  }
};

/// (M_t + I / lambda)^-1 s_t, M_t = S_{t-1} S_{t-1}^T                            theory: eq:preconditioned-input
Vector preconditioned_input(const SequenceSet& set, std::size_t sequence, int t, double lambda) {
  const Eigen::Index n = set.dimension;
  Matrix moment = Matrix::Identity(n, n) / lambda;
  for (int past = 0; past + 1 < t; ++past) {
    moment.selfadjointView<Eigen::Lower>().rankUpdate(Eigen::Map<const Vector>(set.state(sequence, past), n));
  }
  return moment.selfadjointView<Eigen::Lower>().llt().solve(Eigen::Map<const Vector>(set.state(sequence, t - 1), n));
}

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
  Runner(const SequenceProblem& problem, Stack& model, const Eigen::VectorXd& parameters, const ProbePlan& plan,
         const std::function<bool()>& interrupted)
      : problem_(problem), model_(model), parameters_(parameters), plan_(plan), interrupted_(interrupted) {}

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
    int layers = 0;
    for (const Task& task : tasks) layers = std::max(layers, task.layer);
    for (std::size_t done = 0; done < plan_.sequences; done += chunk) {
      if (interrupted_ && interrupted_()) return false;
      const std::size_t count = std::min(chunk, plan_.sequences - done);
      const SequenceSet set = draw_sequences(problem_, plan_.seed, Stream::probes, 0, first + done, count);
      const StackBatch batch = batch_of(set);
      for (int layer = 0; layer <= layers; ++layer) {
        const std::vector<double> stream = model_.stream(parameters_, batch, layer);
        for (Task& task : tasks) {
          if (task.layer == layer) visit(task, set, stream, use);
        }
      }
    }
    return true;
  }
  template <typename Use>
  void visit(Task& task, const SequenceSet& set, const std::vector<double>& stream, const Use& use) const {
    const auto width = static_cast<std::size_t>(model_.shape().width);
    const auto length = static_cast<std::size_t>(set.length);
    for (std::size_t k = 0; k < set.count; ++k) {
      const double* const at = stream.data() + (k * length + static_cast<std::size_t>(task.t - 1)) * width;
      use(task, Eigen::Map<const Vector>(at, model_.shape().width), task.target(set, k));
    }
  }

  const SequenceProblem& problem_;
  Stack& model_;
  const Eigen::VectorXd& parameters_;
  const ProbePlan& plan_;
  const std::function<bool()>& interrupted_;
};

Json by_layer(const std::vector<Task>& tasks, std::size_t begin, std::size_t layers, std::size_t positions) {
  Json json{{"loss", Json::array()}, {"standard_error", Json::array()}, {"constant_loss", Json::array()}};
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Json loss = Json::array();
    Json error = Json::array();
    for (std::size_t k = 0; k < positions; ++k) {
      const Task& task = tasks[begin + layer * positions + k];
      loss.push_back(task.score.mean());
      error.push_back(task.score.standard_error());
      if (layer == 0) json["constant_loss"].push_back(task.constant.mean());
    }
    json["loss"].push_back(loss);
    json["standard_error"].push_back(error);
  }
  return json;
}

/// |d f^(1)_T / d s_t'|, Frobenius, mean over sequences, by central differences.       theory: eq:token-sensitivity
Json sensitivity(const SequenceProblem& problem, Stack& model, const Eigen::VectorXd& parameters, const ProbePlan& plan,
                 const std::function<bool()>& interrupted) {
  constexpr double step = 1e-5;  // truncation step^2, rounding 1e-16 / step: both about 1e-10
  const auto length = static_cast<std::size_t>(problem.length);
  const auto n = static_cast<std::size_t>(problem.state_dimension);
  const auto width = static_cast<std::size_t>(model.shape().width);
  const StackBatch batch = batch_of(draw_sequences(problem, plan.seed, Stream::probes, 1, 0, plan.sensitivity_sequences));
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
        ends.push_back(model.stream(parameters, moved, 1));
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

std::vector<Task> decoding_tasks(const SequenceProblem& problem, const Stack& model, const ProbePlan& plan) {
  const Eigen::Index n = problem.state_dimension;
  const auto layers = static_cast<int>(model.shape().layers.size());
  const Decoder decoder(model.shape().width, n);
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
  Json json{{"positions", Json::array()}, {"loss", Json::array()}, {"standard_error", Json::array()},
            {"constant_loss", Json::array()}};
  for (std::size_t k = begin; k < tasks.size(); ++k) {
    json["positions"].push_back(first + static_cast<int>(k - begin));
    json["loss"].push_back(tasks[k].score.mean());
    json["standard_error"].push_back(tasks[k].score.standard_error());
    json["constant_loss"].push_back(tasks[k].constant.mean());
  }
  return json;
}

}  // namespace

Json probes(const SequenceProblem& problem, Stack& model, const Eigen::VectorXd& parameters, const ProbePlan& plan,
            const std::function<bool()>& interrupted) {
  std::vector<Task> tasks = decoding_tasks(problem, model, plan);
  if (!Runner(problem, model, parameters, plan, interrupted).run(tasks)) return nullptr;
  const std::size_t layers = model.shape().layers.size() + 1;
  const std::size_t half = layers * plan.positions.size();
  Json json{{"lambda", plan.lambda},
            {"sequences", plan.sequences},
            {"positions", plan.positions},
            {"next_state", by_layer(tasks, 0, layers, plan.positions.size())},
            {"preconditioned_input", by_layer(tasks, half, layers, plan.positions.size())}};
  if (plan.past > 0) json["past_tokens"] = past_json(tasks, 2 * half, problem.length - plan.past + 1);
  if (plan.sensitivity_sequences > 0) {
    json["sensitivity"] = sensitivity(problem, model, parameters, plan, interrupted);
    if (json["sensitivity"].is_null()) return nullptr;
  }
  return json;
}

}  // namespace iclflow
