#include "iclflow/mesa/one_step.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "iclflow/analysis/estimate.hpp"
#include "iclflow/experiment/dynamics_summary.hpp"
#include "iclflow/mesa/training.hpp"

namespace iclflow {

namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_sensitivities = 256;  ///< sequences whose derivatives are compared

Json mean_and_error(const ArrayXd& values) {
  const auto count = static_cast<double>(values.size());
  const double spread = (values - values.mean()).square().mean();
  return {{"mean", values.mean()}, {"standard_error", std::sqrt(spread / (count - 1.0))}};
}

VectorXd clipped(const VectorXd& values, double clip) {
  return clip > 0.0 ? VectorXd(values.cwiseMax(-clip).cwiseMin(clip)) : values;
}

/// Coefficients c of the least |clip(features c) - targets|^2: Gauss-Newton over the entries that are not clipped, from
/// the optimum without the clip, its steps halved until they descend.
VectorXd clipped_least_squares(const MatrixXd& features, const VectorXd& targets, double clip) {
  constexpr int most = 30;
  VectorXd c = (features.transpose() * features).ldlt().solve(features.transpose() * targets);
  double loss = (clipped(features * c, clip) - targets).squaredNorm();
  for (int iteration = 0; iteration < most && clip > 0.0; ++iteration) {
    const VectorXd raw = features * c;
    const ArrayXd active = (raw.array().abs() < clip).cast<double>();
    const MatrixXd seen = active.matrix().asDiagonal() * features;
    const VectorXd step = (seen.transpose() * seen).ldlt().solve(seen.transpose() * (targets - raw));
    double length = 1.0;
    for (; length > 1e-6; length *= 0.5) {
      const double now = (clipped(features * (c + length * step), clip) - targets).squaredNorm();
      if (now < loss) {
        loss = now;
        break;
      }
    }
    if (!(length > 1e-6)) break;
    c += length * step;
  }
  return c;
}

/// A model with what it says on the sequences.
class Judged {
 public:
  Judged(const StackModelWeights& model, const StackBatch& batch, int threads)
      : model_(model), stack_(make_stack(model.shape, StackPrecision::double_precision, threads)) {
    const std::vector<double> values = stack_->predictions(model.parameters, batch);
    predictions_ = Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
  }
  [[nodiscard]] const VectorXd& predictions() const { return predictions_; }

  /// d f_T / d s_t of every sequence: rows are the output's coordinates, sequence after sequence.
  [[nodiscard]] std::vector<MatrixXd> sensitivities(const StackBatch& all, std::size_t count) const {
    const int n = model_.shape.state_dimension;
    const auto row = static_cast<std::size_t>(all.length * n);
    StackBatch batch{
        count, all.length, {all.inputs.begin(), all.inputs.begin() + static_cast<Index>(count * row)}, {}, {}};
    batch.position_weights.assign(static_cast<std::size_t>(all.length), 0.0);
    batch.position_weights.back() = 1.0;
    std::vector<MatrixXd> jacobians(count, MatrixXd(n, all.length * n));
    VectorXd slope;
    std::vector<double> by_inputs;
    for (int i = 0; i < n; ++i) {
      // A target that differs from f_T by the unit vector e_i makes e_i^T f_T the slope of the loss.
      batch.targets.assign(predictions_.data(), predictions_.data() + count * row);
      for (std::size_t k = 0; k < count; ++k) batch.targets[(k + 1) * row - static_cast<std::size_t>(n - i)] -= 1.0;
      stack_->gradient(model_.parameters, batch, slope, &by_inputs);
      for (std::size_t k = 0; k < count; ++k) {
        jacobians[k].row(i) =
            static_cast<double>(count) *
            Eigen::Map<const VectorXd>(by_inputs.data() + k * row, static_cast<Index>(row)).transpose();
      }
    }
    return jacobians;
  }

 private:
  StackModelWeights model_;
  std::unique_ptr<Stack> stack_;
  VectorXd predictions_;
};

class OneStep {
 public:
  OneStep(const OneStepPlan& plan, const SequenceProblem& problem, const StackModelWeights& trained, int threads)
      : trained_(trained),
        step_(recover_step(trained)),
        products_(head_products(trained.shape, trained.parameters).front()),
        batch_(batch_of(draw_sequences(problem, plan.seed, Stream::evaluation, 0, 0, plan.sequences))),
        threads_(threads),
        targets_(Eigen::Map<const VectorXd>(batch_.targets.data(), static_cast<Index>(batch_.targets.size()))) {}

  Json run(const std::function<bool()>& interrupted) {
    const auto stop = [&] { return interrupted && interrupted(); };
    Json json = {{"eta", step_.rate},
                 {"minus_eta_phi", step_.minus_rate_phi},
                 {"effective_minus_eta_phi", step_.effective_minus_rate_phi},
                 {"heads", heads()}};
    if (stop()) return nullptr;
    const Judged layer(trained_, batch_, threads_);
    const Judged constructed(constructed_step(trained_.shape, step_.rate, step_.minus_rate_phi), batch_, threads_);
    const Judged effective(constructed_step(trained_.shape, step_.rate, step_.effective_minus_rate_phi), batch_,
                           threads_);
    json["losses"] = {{"trained", loss(layer.predictions())},
                      {"constructed", loss(constructed.predictions())},
                      {"effective", loss(effective.predictions())}};
    if (stop()) return nullptr;
    put_other_losses(json["losses"]);
    json["sparsity"] = sparsity();
    if (stop()) return nullptr;
    json["cosines"] = cosines(layer, constructed);
    json["effective_cosines"] = cosines(layer, effective);
    return json;
  }

 private:
  [[nodiscard]] Json heads() const {
    Json all = Json::array();
    const int n = trained_.shape.state_dimension;
    for (const HeadProducts& head : products_) {
      const auto table = [n](const MatrixXd& product) {
        Json rows = Json::array();
        const MatrixXd means = block_means(product, n);
        for (const auto& row : means.rowwise()) rows.push_back(std::vector<double>(row.begin(), row.end()));
        return rows;
      };
      const RecoveredStep own = recover_step(stack_of(trained_.shape, {{head}}));
      all.push_back({{"eta", own.rate},
                     {"minus_eta_phi", own.minus_rate_phi},
                     {"key_query", table(head.key_query)},
                     {"output_value", table(head.output_value)}});
    }
    return all;
  }

  /// Of predictions as they are.
  [[nodiscard]] Json loss(const VectorXd& predictions) const {
    const auto count = static_cast<Index>(batch_.count);
    const MatrixXd squares =
        (predictions - targets_).cwiseAbs2().reshaped(targets_.size() / count, count) / (2.0 * batch_.length);
    Json json = mean_and_error(squares.colwise().sum().transpose().array());
    return {{"loss", json["mean"]}, {"standard_error", json["standard_error"]}};
  }

  void put_other_losses(Json& losses) const {
    const StackModelWeights compressed = compress(trained_.shape, trained_.parameters);
    losses["compressed"] = loss(Judged(compressed, batch_, threads_).predictions());
    StackShape free = trained_.shape;
    free.clip = 0.0;
    MatrixXd features(targets_.size(), 2);
    features.col(0) = Judged(constructed_step(free, 1.0, 0.0), batch_, threads_).predictions();
    features.col(1) = Judged(constructed_step(free, 0.0, 1.0), batch_, threads_).predictions();
    const double clip = trained_.shape.clip;
    for (const Index count : {1, 2}) {
      const MatrixXd used = features.leftCols(count);
      const VectorXd best = clipped_least_squares(used, targets_, clip);
      Json entry = {{"eta", best(0)}};
      if (count == 2) entry["minus_eta_phi"] = best(1);
      entry.update(loss(clipped(used * best, clip)));
      losses[count == 1 ? "best_step" : "best_step_from_phi"] = std::move(entry);
    }
    losses["zero"] = loss(VectorXd::Zero(targets_.size()));
  }

  /// Expected: the previous state's row and the present one's columns of key_query; of output_value the first row's
  /// last two or three blocks.
  [[nodiscard]] Json sparsity() const {
    const int n = trained_.shape.state_dimension;
    const int first = trained_.shape.mask_second ? 2 : 1;
    double all[2] = {}, outside[2] = {}, largest[2] = {}, other[2] = {};
    double distance = 0.0;
    for (const HeadProducts& head : products_) {
      const MatrixXd* products[2] = {&head.key_query, &head.output_value};
      for (int which = 0; which < 2; ++which) {
        const MatrixXd means = block_means(*products[which], n);
        for (int i = 0; i < 4; ++i) {
          for (int j = 0; j < 4; ++j) {
            const double square = products[which]->block(i * n, j * n, n, n).squaredNorm();
            const bool expected = which == 0 ? i == 3 && j >= first && j < 3 : i == 0 && j >= first;
            all[which] += square;
            if (!expected) outside[which] += square;
            double& maximum = expected ? largest[which] : other[which];
            maximum = std::max(maximum, std::abs(means(i, j)));
          }
        }
      }
      const MatrixXd main = head.key_query.block(3 * n, 2 * n, n, n);
      const double mean = main.diagonal().mean();
      const double relative = (main - mean * MatrixXd::Identity(n, n)).norm() / (std::abs(mean) * std::sqrt(n));
      distance = std::max(distance, relative);
    }
    return {{"key_query_outside", outside[0] / all[0]},
            {"output_value_outside", outside[1] / all[1]},
            {"largest_other_key_query", other[0] / largest[0]},
            {"largest_other_output_value", other[1] / largest[1]},
            {"key_query_from_identity", distance}};
  }

  [[nodiscard]] Json cosines(const Judged& layer, const Judged& constructed) const {
    const auto row = static_cast<Index>(targets_.size()) / static_cast<Index>(batch_.count);
    std::vector<double> of_predictions, of_slopes;
    for (Index k = 0; k < static_cast<Index>(batch_.count); ++k) {
      add_cosine(layer.predictions().segment(k * row, row), constructed.predictions().segment(k * row, row),
                 of_predictions);
    }
    const std::size_t count = std::min(batch_.count, most_sensitivities);
    const std::vector<MatrixXd> ours = layer.sensitivities(batch_, count);
    const std::vector<MatrixXd> theirs = constructed.sensitivities(batch_, count);
    for (std::size_t k = 0; k < count; ++k) add_cosine(ours[k], theirs[k], of_slopes);
    return {
        {"predictions", mean_and_error(Eigen::Map<const ArrayXd>(of_predictions.data(), std::ssize(of_predictions)))},
        {"sensitivities", mean_and_error(Eigen::Map<const ArrayXd>(of_slopes.data(), std::ssize(of_slopes)))}};
  }

  /// Left out where one has no direction, as when the clip holds every output.
  static void add_cosine(const MatrixXd& one, const MatrixXd& other, std::vector<double>& cosines) {
    const double norms = one.norm() * other.norm();
    if (norms > 0.0) cosines.push_back(one.cwiseProduct(other).sum() / norms);
  }

  const StackModelWeights& trained_;
  RecoveredStep step_;
  std::vector<HeadProducts> products_;
  StackBatch batch_;
  int threads_;
  VectorXd targets_;
};

}  // namespace

Json one_step(const OneStepPlan& plan, const SequenceProblem& problem, const StackModelWeights& trained, int threads,
              const std::function<bool()>& interrupted) {
  return OneStep(plan, problem, trained, threads).run(interrupted);
}

Json one_step_of_training(const OneStepPlan& plan, const SequenceProblem& problem, const StackShape& shape,
                          const DynamicsResult& result, int threads, const std::function<bool()>& interrupted) {
  std::vector<std::pair<std::string, std::vector<double>>> numbers;  // in the order of the first seed
  const auto add = [&numbers](const std::string& name, const Json& value) {
    auto found = std::find_if(numbers.begin(), numbers.end(), [&](const auto& entry) { return entry.first == name; });
    if (found == numbers.end()) found = numbers.insert(numbers.end(), {name, {}});
    found->second.push_back(value.get<double>());
  };
  Json details = Json::array();
  for (std::size_t m = 0; m < result.final_states.size(); ++m) {
    Json one = one_step(plan, problem, {shape, result.final_states[m]}, threads, interrupted);
    if (one.is_null()) return nullptr;
    add("eta", one.at("eta"));
    add("minus_eta_phi", one.at("minus_eta_phi"));
    add("effective_minus_eta_phi", one.at("effective_minus_eta_phi"));
    for (const auto& [name, entry] : one.at("losses").items()) add(name + "_loss", entry.at("loss"));
    add("best_step_eta", one.at("losses").at("best_step").at("eta"));
    for (const auto& [name, value] : one.at("sparsity").items()) add(name, value);
    for (const auto& [name, entry] : one.at("cosines").items()) add(name + "_cosine", entry.at("mean"));
    for (const auto& [name, entry] : one.at("effective_cosines").items())
      add("effective_" + name + "_cosine", entry.at("mean"));
    Json detail = {{"seed", result.seeds.at(m)}};
    detail.update(one);
    details.push_back(std::move(detail));
  }
  Json json;
  for (const auto& [name, values] : numbers) add_estimate(json, name, mean_estimate(values));
  json["by_seed"] = std::move(details);
  return json;
}

std::optional<OneStepPlan> read_one_step(const Section& root) {
  const auto section = root.find_section("one_step");
  if (!section) return std::nullopt;
  OneStepPlan plan;
  plan.sequences = static_cast<std::size_t>(section->integer("sequences", 2, 100000, 1000));
  plan.seed = static_cast<std::uint64_t>(section->integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
  section->finish();
  return plan;
}

void resolve(const OneStepPlan& plan, TomlText& text) {
  text.table("one_step");
  text.put("sequences", static_cast<std::uint64_t>(plan.sequences));
  text.put("seed", plan.seed);
}

}  // namespace iclflow
