#include "iclflow/regression/simulation.hpp"

#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "iclflow/attention/evaluation_set.hpp"
#include "iclflow/attention/score_space_gradient.hpp"
#include "iclflow/attention/symmetrised_gradient.hpp"
#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/problem/quantity.hpp"
#include "iclflow/reduction/projection.hpp"

namespace iclflow {

namespace {

/// The evaluation set is the same for every seed and every run of a problem, so that differences are the weights'.
constexpr std::uint64_t evaluation_seed = 0;

/// Gradient of the sampled loss in one of two precisions; parameters and the sum of the batch's parts stay in
/// double.
class BatchGradient {
 public:
  virtual ~BatchGradient() = default;
  [[nodiscard]] virtual ActingWeights operator()(const ActingWeights& weights, const StreamKey& key,
                                                 std::size_t batch) = 0;
};

template <typename T>
class TokenGradient final : public BatchGradient {
 public:
  TokenGradient(const Problem& problem, const WeightLayout& layout, ThreadTeam& team)
      : estimator_(problem, layout, team) {}
  [[nodiscard]] ActingWeights operator()(const ActingWeights& weights, const StreamKey& key,
                                         std::size_t batch) override {
    return estimator_(weights, key, batch).gradient;
  }

 private:
  TokenEstimator<T> estimator_;
};

template <typename T>
class ScoreSpaceBatch final : public BatchGradient {
 public:
  ScoreSpaceBatch(const Problem& problem, const WeightLayout& layout, const Rotations& basis, ThreadTeam& team)
      : estimator_(problem, layout, basis, team) {}
  [[nodiscard]] ActingWeights operator()(const ActingWeights& weights, const StreamKey& key,
                                         std::size_t batch) override {
    // A stream of its own: a simulation by tokens with the same seed is independent.
    return estimator_(weights, {key.seed, Stream::score_space, key.step, 0}, batch).gradient;
  }

 private:
  ScoreSpaceGradient<T> estimator_;
};

template <template <typename> class Batch, typename... Arguments>
std::unique_ptr<BatchGradient> in_precision(Precision precision, Arguments&&... arguments) {
  if (precision == Precision::single_precision) return std::make_unique<Batch<float>>(arguments...);
  return std::make_unique<Batch<double>>(arguments...);
}

/// The full-parameter model: what both ways of descending share.
class AttentionModel {
 public:
  AttentionModel(const Problem& problem, const WeightLayout& layout, Eigen::VectorXd weights,
                 const SimulationOptions& options)
      : problem_(problem),
        layout_(layout),
        initial_(std::move(weights)),
        options_(options),
        basis_(rotations(problem)),
        team_(options.threads),
        evaluation_(problem, basis_, evaluation_seed, static_cast<std::size_t>(options.evaluation_contexts), team_),
        acting_(ActingWeights::zero(layout)) {
    if (initial_.size() != layout.size()) throw std::invalid_argument("initial weights do not fit their layout");
    if (options.symmetrised) {
      symmetrised_ = std::make_unique<SymmetrisedGradient>(problem, layout, basis_, options.seed,
                                                           static_cast<std::size_t>(options.batch), team_);
    } else if (options.estimator == GradientEstimator::score_space) {
      if (const auto obstacle = score_space_obstacle(layout, initial_)) {
        throw std::invalid_argument("no gradient in score space: " + *obstacle);
      }
      gradient_ = in_precision<ScoreSpaceBatch>(options.precision, problem, layout, basis_, team_);
    } else {
      gradient_ = in_precision<TokenGradient>(options.precision, problem, layout, team_);
    }
  }

  [[nodiscard]] const Eigen::VectorXd& initial() const { return initial_; }

  void batch_gradient(std::uint64_t step, const Eigen::VectorXd& weights, Eigen::VectorXd& gradient) const {
    if (symmetrised_) {
      (*symmetrised_)(weights, gradient);
      return;
    }
    over_heads([&](int h) { acting_of_head(layout_, weights, h, acting_); });
    const ActingWeights slope =
        (*gradient_)(acting_, {options_.seed, Stream::training, static_cast<std::uint32_t>(step), 0},
                     static_cast<std::size_t>(options_.batch));
    gradient.resize(layout_.size());
    over_heads([&](int h) { pull_back_head(layout_, weights, h, slope, gradient); });
  }

  void declare(Trajectory& run) const {
    const auto heads = static_cast<std::size_t>(layout_.heads);
    const auto tasks = static_cast<std::size_t>(layout_.tasks);
    const auto d = static_cast<std::size_t>(layout_.dimension);
    run.declare("loss", "population loss (1/2) E|yhat - y_q|^2 on the fixed evaluation set, noise-free target");
    run.declare("loss_standard_error", "standard error of the loss over the evaluation contexts");
    run.declare("mu", "diagonal of U_Y in the Psi basis", {"head", "task"}, {heads, tasks});
    run.declare("omega_block", "mean of omega over each task's block", {"head", "task"}, {heads, tasks});
    run.declare("omega", "diagonal of the key-query XX block in the Phi basis, score factor included",
                {"head", "coordinate"}, {heads, d});
    run.declare("leakage_key_query", "root sum of squares of the off-diagonal key-query XX entries, all heads");
    run.declare("leakage_cross", "root sum of squares of the key-query YX blocks, all heads");
    run.declare("leakage_output_value", "root sum of squares of the off-diagonal U_Y entries, all heads");
    run.declare("leakage_value_x", "root sum of squares of the U_X blocks, all heads");
  }

  void observe(const Eigen::VectorXd& weights, Trajectory& run) const {
    const LossEstimate loss = evaluation_(acting(layout_, weights));
    const Projection at = project(layout_, basis_, weights);
    const Matrix omega_block = block_means(problem_, at.omega);
    const auto row = [](const Matrix& m) { return std::span(m.data(), static_cast<std::size_t>(m.size())); };
    std::size_t k = 0;
    run.append(k++, loss.loss);
    run.append(k++, loss.standard_error);
    run.append(k++, row(at.mu));
    run.append(k++, row(omega_block));
    run.append(k++, row(at.omega));
    for (const double leak : {at.leakage.key_query, at.leakage.cross, at.leakage.output_value, at.leakage.value_x}) {
      run.append(k++, leak);
    }
  }

  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& weights) const {
    const Quantity wanted = parse_quantity(name, layout_.heads, layout_.tasks);
    if (wanted.kind == Quantity::Kind::loss) return evaluation_(acting(layout_, weights)).loss;
    const Projection at = project(layout_, basis_, weights);
    if (wanted.kind == Quantity::Kind::mu) return at.mu(wanted.head, wanted.task);
    return block_means(problem_, at.omega)(wanted.head, wanted.task);
  }

  [[nodiscard]] std::string component(Eigen::Index i) const { return entry_name(layout_, i); }

 private:
  /// Heads shared by the threads where their matrix products are worth a wake-up (some 10 us).
  template <typename Job>
  void over_heads(const Job& job) const {
    constexpr Eigen::Index worthwhile = 200'000;
    if (layout_.size() * layout_.dimension < worthwhile) {
      for (int h = 0; h < layout_.heads; ++h) job(h);
      return;
    }
    team_.run(static_cast<std::size_t>(layout_.heads),
              [&job](std::size_t h, std::size_t /*worker*/) { job(static_cast<int>(h)); });
  }

  Problem problem_;
  WeightLayout layout_;
  Eigen::VectorXd initial_;
  SimulationOptions options_;
  Rotations basis_;
  // Scratch memory of the estimators; a model is used by one evolution at a time.
  mutable ThreadTeam team_;
  mutable EvaluationSet evaluation_;
  mutable ActingWeights acting_;                      ///< of the step at hand
  std::unique_ptr<BatchGradient> gradient_;           ///< of fresh or fixed contexts, or
  std::unique_ptr<SymmetrisedGradient> symmetrised_;  ///< of fixed contexts with their sign flips
};

class AttentionDescent final : public DescentSystem {
 public:
  template <typename... Arguments>
  explicit AttentionDescent(Arguments&&... arguments) : model_(std::forward<Arguments>(arguments)...) {}
  [[nodiscard]] Eigen::VectorXd initial() const override { return model_.initial(); }
  void declare(Trajectory& run) const override { model_.declare(run); }
  void observe(const Eigen::VectorXd& state, Trajectory& run) const override { model_.observe(state, run); }
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& state) const override {
    return model_.quantity(name, state);
  }
  void gradient(std::uint64_t step, const Eigen::VectorXd& theta, Eigen::VectorXd& gradient) const override {
    model_.batch_gradient(step, theta, gradient);
  }
  [[nodiscard]] std::string component(Eigen::Index i) const override { return model_.component(i); }

 private:
  AttentionModel model_;
};

class AttentionFlow final : public OdeSystem {
 public:
  template <typename... Arguments>
  explicit AttentionFlow(Arguments&&... arguments) : model_(std::forward<Arguments>(arguments)...) {}
  [[nodiscard]] Eigen::VectorXd initial() const override { return model_.initial(); }
  void declare(Trajectory& run) const override { model_.declare(run); }
  void observe(const Eigen::VectorXd& state, Trajectory& run) const override { model_.observe(state, run); }
  [[nodiscard]] double quantity(const std::string& name, const Eigen::VectorXd& state) const override {
    return model_.quantity(name, state);
  }
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override {
    model_.batch_gradient(0, y, rate);
    rate = -rate;
  }
  [[nodiscard]] std::string component(Eigen::Index i) const override { return model_.component(i); }

 private:
  AttentionModel model_;
};

}  // namespace

std::unique_ptr<DescentSystem> make_descent(const Problem& problem, const WeightLayout& layout,
                                            const Eigen::VectorXd& weights, const SimulationOptions& options) {
  return std::make_unique<AttentionDescent>(problem, layout, weights, options);
}

std::unique_ptr<OdeSystem> make_gradient_flow(const Problem& problem, const WeightLayout& layout,
                                              const Eigen::VectorXd& weights, const SimulationOptions& options) {
  if (options.estimator != GradientEstimator::tokens) {
    throw std::invalid_argument("a gradient flow needs the estimator tokens");
  }
  return std::make_unique<AttentionFlow>(problem, layout, weights, options);
}

}  // namespace iclflow
