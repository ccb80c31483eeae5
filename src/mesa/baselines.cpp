#include "iclflow/mesa/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "iclflow/attention/thread_team.hpp"
#include "iclflow/mesa/preconditioned.hpp"
#include "mesa/context_moments.hpp"
#include "mesa/golden_section.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t part_size = 32;         ///< sequences that one thread takes at a time
constexpr std::size_t parts_of_round = 64;    ///< between two questions whether to stop
constexpr std::size_t searched_rates = 1000;  ///< sequences of the line searches under a clip
constexpr std::size_t searched_kernels = 200;

/// f_t = sum_{t' < t} s_{t'+1} softmax_t'(beta s_t' . s_t) (theory: eq:kernel-regression); zero at t = 1. states: of
/// one sequence; t counts from 0.
void kernel_regression(const double* states, std::size_t n, int t, double beta, std::vector<double>& weights,
                       double* out) {
  std::fill(out, out + n, 0.0);
  const double* query = states + static_cast<std::size_t>(t) * n;
  const auto count = static_cast<std::size_t>(t);
  weights.resize(count);
  double largest = -HUGE_VAL;
  for (std::size_t k = 0; k < count; ++k) {
    double score = 0.0;
    for (std::size_t i = 0; i < n; ++i) score += states[k * n + i] * query[i];
    weights[k] = beta * score;
    largest = std::max(largest, weights[k]);
  }
  double sum = 0.0;
  for (std::size_t k = 0; k < count; ++k) {
    weights[k] = std::exp(weights[k] - largest);
    sum += weights[k];
    for (std::size_t i = 0; i < n; ++i) out[i] += weights[k] * states[(k + 1) * n + i];
  }
  for (std::size_t i = 0; i < n && count > 0; ++i) out[i] /= sum;
}

/// Half the squared error of a prediction, clipped where there is a clip.
double half_square(const double* prediction, const double* target, std::size_t n, double clip) {
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = clip > 0.0 ? std::clamp(prediction[i], -clip, clip) : prediction[i];
    sum += (value - target[i]) * (value - target[i]);
  }
  return 0.5 * sum;
}

/// One predictor: a ridge, a kernel, or coefficients of one family's features (none: zero).
struct Predictor {
  enum class Kind : std::uint8_t { polynomial, ridge, kernel } kind = Kind::polynomial;
  std::size_t family = 0;
  Eigen::VectorXd coefficients{};
  double parameter = 0.0;  ///< 1 / lambda, or beta
};

/// Sums over sequences of the losses of one predictor, as it is and clipped.
struct Tally {
  explicit Tally(int length) : positions(static_cast<std::size_t>(length)) {}
  std::vector<double> positions;
  double sum = 0.0, squares = 0.0;

  void add(const std::vector<double>& losses) {
    double mean = 0.0;
    for (std::size_t t = 0; t < losses.size(); ++t) {
      positions[t] += losses[t];
      mean += losses[t] / static_cast<double>(losses.size());
    }
    sum += mean;
    squares += mean * mean;
  }
  void add(const Tally& other) {
    for (std::size_t t = 0; t < positions.size(); ++t) positions[t] += other.positions[t];
    sum += other.sum;
    squares += other.squares;
  }
  void put(Json& json, double count) const {
    const double mean = sum / count;
    json["loss"] = mean;
    json["standard_error"] = std::sqrt(std::max(0.0, squares / count - mean * mean) / (count - 1.0));
    Json list = Json::array();
    for (const double position : positions) list.push_back(position / count);
    json["positions"] = std::move(list);
  }
};
using Tallies = std::vector<Tally>;  ///< two for every predictor

/// As many states under each other as determine the hidden one (theory: eq:partial-map).
int stacked_states(const BaselinePlan& plan, const SequenceProblem& problem) {
  if (plan.stacked > 0) return plan.stacked;
  if (problem.kind != SequenceKind::partial) return 1;
  return (problem.hidden_dimension + problem.state_dimension - 1) / problem.state_dimension;
}

class Baselines {
 public:
  Baselines(const BaselinePlan& plan, const SequenceProblem& problem, int threads,
            const std::function<bool()>& interrupted)
      : plan_(plan),
        problem_(problem),
        n_(static_cast<std::size_t>(problem.state_dimension)),
        stacked_(stacked_states(plan, problem)),
        interrupted_(interrupted),
        team_(threads) {
    int degree = 0;
    for (const int steps : plan.preconditioned_steps) degree = std::max(degree, steps);
    families_ = {{1.0 / plan.preconditioned_lambda, true, 1.0, degree + 1}, {0.0, false, typical_norm(), degree + 1}};
  }

  Json run() {
    if (!fit()) return nullptr;
    choose();
    if (!score()) return nullptr;
    return report();
  }

 private:
  [[nodiscard]] SequenceSet draw(std::size_t first, std::size_t count) const {
    return draw_sequences(problem_, plan_.seed, Stream::evaluation, 0, first, std::min(count, plan_.sequences - first));
  }

  /// Largest |M_T|_F of the first sequences: the powers of M over it neither grow nor vanish.
  [[nodiscard]] double typical_norm() const {
    const SequenceSet set = draw(0, part_size);
    ContextMoments moments(problem_.state_dimension, stacked_);
    double largest = 0.0;
    for (std::size_t k = 0; k < set.count; ++k) {
      moments.clear();
      for (int t = 0; t <= set.length; ++t) moments.observe(set.state(k, t));
      largest = std::max(largest, moments.norm());
    }
    return largest > 0.0 ? largest : 1.0;
  }

  /// Calls job(sequences of the part, its number in the round) for all parts on the team, and after each round
  /// reduce(number in the round) in order. False when interrupted.
  bool for_all(const std::function<void(const SequenceSet&, std::size_t)>& job,
               const std::function<void(std::size_t)>& reduce) {
    const std::size_t parts = (plan_.sequences + part_size - 1) / part_size;
    for (std::size_t begin = 0; begin < parts; begin += parts_of_round) {
      if (interrupted_ && interrupted_()) return false;
      const std::size_t now = std::min(parts_of_round, parts - begin);
      team_.run(now, [&](std::size_t part, std::size_t) { job(draw((begin + part) * part_size, part_size), part); });
      for (std::size_t part = 0; part < now; ++part) reduce(part);
    }
    return true;
  }

  /// Losses as quadratic functions of the coefficients of each family.
  bool fit() {
    const auto none = [this] {
      std::vector<QuadraticLoss> losses;
      for (const PolynomialFamily& family : families_) losses.push_back(QuadraticLoss::zero(family.count));
      return losses;
    };
    losses_ = none();
    std::vector<std::vector<QuadraticLoss>> parts(parts_of_round);
    return for_all(
        [&](const SequenceSet& set, std::size_t part) {
          parts[part] = none();
          accumulate(set, parts[part]);
        },
        [&](std::size_t part) {
          for (std::size_t family = 0; family < losses_.size(); ++family) {
            losses_[family].constant += parts[part][family].constant;
            losses_[family].slope += parts[part][family].slope;
            losses_[family].curvature += parts[part][family].curvature;
          }
        });
  }

  void accumulate(const SequenceSet& set, std::vector<QuadraticLoss>& losses) const {
    ContextMoments moments(problem_.state_dimension, stacked_);
    Eigen::MatrixXd features(static_cast<Eigen::Index>(n_), families_[0].count);
    for (std::size_t k = 0; k < set.count; ++k) {
      moments.clear();
      for (int t = 0; t < set.length; ++t) {
        moments.observe(set.state(k, t));
        const Eigen::Map<const Eigen::VectorXd> target(set.state(k, t + 1), static_cast<Eigen::Index>(n_));
        for (std::size_t family = 0; family < losses.size(); ++family) {
          moments.features(families_[family], features.data());
          losses[family].constant += 0.5 * target.squaredNorm();
          losses[family].slope.noalias() += features.transpose() * target;
          losses[family].curvature.noalias() += features.transpose().lazyProduct(features);
        }
      }
    }
  }

  /// The predictors to score, in the order in which report() reads them.
  void choose() {
    const auto polynomial = [this](std::size_t family, const Eigen::VectorXd& coefficients) {
      predictors_.push_back({Predictor::Kind::polynomial, family, coefficients});
    };
    polynomial(0, {});
    // eta = argmin of the loss of eta G_t s_t (theory: eq:gradient-step-prediction)
    rate_ = least_squares(losses_[1], 1)(0) / families_[1].scale;
    clipped_rate_ = plan_.clip > 0.0 ? search_rate() : rate_;
    for (const double rate : {rate_, clipped_rate_})
      polynomial(1, Eigen::VectorXd::Constant(1, rate * families_[1].scale));
    for (const double lambda : plan_.ridge) predictors_.push_back({Predictor::Kind::ridge, 0, {}, 1.0 / lambda});
    for (const int steps : plan_.preconditioned_steps) {
      recursions_.push_back(trained_recursion(losses_[0], steps));
      polynomial(0, recursions_.back().polynomial());
      polynomial(0, least_squares(losses_[0], steps + 1));
      polynomial(0, Recursion::neumann(steps).polynomial());
      polynomial(1, least_squares(losses_[1], steps + 1));
    }
    beta_ = search_kernel();
    predictors_.push_back({Predictor::Kind::kernel, 0, {}, beta_});
  }

  /// Best eta under the clip.
  [[nodiscard]] double search_rate() const {
    const SequenceSet set = draw(0, searched_rates);
    const PolynomialFamily step{0.0, false, 1.0, 1};
    ContextMoments moments(problem_.state_dimension, stacked_);
    std::vector<double> products(set.count * static_cast<std::size_t>(set.length) * n_);
    double* out = products.data();
    for (std::size_t k = 0; k < set.count; ++k) {
      moments.clear();
      for (int t = 0; t < set.length; ++t, out += n_) {
        moments.observe(set.state(k, t));
        moments.features(step, out);
      }
    }
    std::vector<double> prediction(n_);
    const auto loss = [&](double logarithm) {
      const double rate = std::exp(logarithm);
      const double* product = products.data();
      double sum = 0.0;
      for (std::size_t k = 0; k < set.count; ++k) {
        for (int t = 0; t < set.length; ++t, product += n_) {
          for (std::size_t i = 0; i < n_; ++i) prediction[i] = rate * product[i];
          sum += half_square(prediction.data(), set.state(k, t + 1), n_, plan_.clip);
        }
      }
      return sum;
    };
    // A negative or vanishing best rate means that nothing is learned by a step: the clip does not change that.
    if (!(rate_ > 0.0)) return rate_;
    return std::exp(golden_section(loss, std::log(rate_) - 2.0, std::log(rate_) + 4.0, 30));
  }

  [[nodiscard]] double search_kernel() const {
    const SequenceSet set = draw(0, searched_kernels);
    std::vector<double> prediction(n_), weights;
    const auto loss = [&](double logarithm) {
      double sum = 0.0;
      for (std::size_t k = 0; k < set.count; ++k) {
        for (int t = 0; t < set.length; ++t) {
          kernel_regression(set.state(k, 0), n_, t, std::exp(logarithm), weights, prediction.data());
          sum += half_square(prediction.data(), set.state(k, t + 1), n_, 0.0);
        }
      }
      return sum;
    };
    return std::exp(golden_section(loss, std::log(1e-2), std::log(1e2), 16));
  }

  bool score() {
    tallies_.assign(2 * predictors_.size(), Tally(problem_.length));
    std::vector<Tallies> parts(parts_of_round);
    return for_all(
        [&](const SequenceSet& set, std::size_t part) {
          parts[part].assign(tallies_.size(), Tally(problem_.length));
          for (std::size_t k = 0; k < set.count; ++k) score(set, k, parts[part]);
        },
        [&](std::size_t part) {
          for (std::size_t k = 0; k < tallies_.size(); ++k) tallies_[k].add(parts[part][k]);
        });
  }

  void score(const SequenceSet& set, std::size_t sequence, Tallies& tallies) const {
    const auto length = static_cast<std::size_t>(set.length);
    ContextMoments moments(problem_.state_dimension, stacked_);
    std::vector<Eigen::MatrixXd> features;
    for (const PolynomialFamily& family : families_) features.emplace_back(static_cast<Eigen::Index>(n_), family.count);
    Eigen::VectorXd prediction(static_cast<Eigen::Index>(n_));
    std::vector<double> weights;
    std::vector<std::vector<double>> losses(tallies.size(), std::vector<double>(length));
    for (std::size_t t = 0; t < length; ++t) {
      const int now = static_cast<int>(t);
      moments.observe(set.state(sequence, now));
      for (std::size_t k = 0; k < families_.size(); ++k) moments.features(families_[k], features[k].data());
      for (std::size_t k = 0; k < predictors_.size(); ++k) {
        const Predictor& predictor = predictors_[k];
        if (predictor.kind == Predictor::Kind::ridge) {
          moments.ridge(predictor.parameter, prediction.data());
        } else if (predictor.kind == Predictor::Kind::kernel) {
          kernel_regression(set.state(sequence, 0), n_, now, predictor.parameter, weights, prediction.data());
        } else {
          const Eigen::VectorXd& c = predictor.coefficients;
          prediction.noalias() = features[predictor.family].leftCols(c.size()) * c;
        }
        const double* target = set.state(sequence, now + 1);
        losses[2 * k][t] = half_square(prediction.data(), target, n_, 0.0);
        losses[2 * k + 1][t] = half_square(prediction.data(), target, n_, plan_.clip);
      }
    }
    for (std::size_t k = 0; k < tallies.size(); ++k) tallies[k].add(losses[k]);
  }

  /// The next predictor's entry; `other`: the predictor whose clipped loss counts.
  void put(Json& json, std::size_t predictor, std::size_t other) const {
    const auto count = static_cast<double>(plan_.sequences);
    tallies_[2 * predictor].put(json, count);
    if (!(plan_.clip > 0.0)) return;
    Json clipped = {{"clip", plan_.clip}};
    if (other != predictor) clipped["eta"] = clipped_rate_;
    tallies_[2 * other + 1].put(clipped, count);
    json["clipped"] = std::move(clipped);
  }
  void put(Json& json, std::size_t predictor) const { put(json, predictor, predictor); }

  [[nodiscard]] Json report() const {
    Json json = {{"sequences", plan_.sequences}, {"stacked", stacked_}};
    put(json["zero"], 0);
    json["gradient_step"] = {{"eta", rate_}};
    put(json["gradient_step"], 1, 2);
    std::size_t next = 3;
    json["ridge"] = Json::array();
    for (const double lambda : plan_.ridge) {
      Json row = {{"lambda", lambda}};
      put(row, next++);
      json["ridge"].push_back(std::move(row));
    }
    json["preconditioned"] = Json::array();
    for (std::size_t k = 0; k < recursions_.size(); ++k, next += 4) {
      Json row = {{"steps", plan_.preconditioned_steps[k]}, {"lambda", plan_.preconditioned_lambda}};
      put(row, next);
      row["initial"] = recursions_[k].initial;
      row["alpha"] = recursions_[k].alpha;
      row["beta"] = recursions_[k].beta;
      put(row["least_squares"], next + 1);
      put(row["neumann"], next + 2);
      put(row["unnormalised"], next + 3);
      json["preconditioned"].push_back(std::move(row));
    }
    json["kernel_regression"] = {{"beta", beta_}};
    put(json["kernel_regression"], next);
    return json;
  }

  const BaselinePlan& plan_;
  const SequenceProblem& problem_;
  std::size_t n_;
  int stacked_;
  const std::function<bool()>& interrupted_;
  ThreadTeam team_;
  std::vector<PolynomialFamily> families_;  ///< of the normalised A, of M itself
  std::vector<QuadraticLoss> losses_;
  double rate_ = 0.0, clipped_rate_ = 0.0, beta_ = 0.0;
  std::vector<Recursion> recursions_;
  std::vector<Predictor> predictors_;
  Tallies tallies_;
};

void describe(std::string& text, const std::string& name, const Json& entry) {
  text += fmt::format("  {:<34} {:9.5f} +- {:.5f}", name, entry.at("loss").get<double>(),
                      entry.at("standard_error").get<double>());
  if (entry.contains("clipped")) {
    const Json& clipped = entry.at("clipped");
    text += fmt::format("   {:9.5f} +- {:.5f}", clipped.at("loss").get<double>(),
                        clipped.at("standard_error").get<double>());
    if (clipped.contains("eta")) text += fmt::format(" (eta = {:.4g})", clipped.at("eta").get<double>());
  }
  text += "\n";
}

}  // namespace

Json sampled_baselines(const BaselinePlan& plan, const SequenceProblem& problem, int threads,
                       const std::function<bool()>& interrupted) {
  return Baselines(plan, problem, threads, interrupted).run();
}

std::string describe_baselines(const Json& baselines) {
  const Json& zero = baselines.at("zero");
  std::string text = fmt::format("Baselines on {} sequences: mean over t of half the squared error",
                                 baselines.at("sequences").get<std::size_t>());
  if (zero.contains("clipped"))
    text += fmt::format("; then clipped to {:g}", zero.at("clipped").at("clip").get<double>());
  text += "\n";
  const int stacked = baselines.at("stacked").get<int>();
  if (stacked > 1) text += fmt::format("linear ones see {} states under each other\n", stacked);
  describe(text, "zero", zero);
  const Json& step = baselines.at("gradient_step");
  describe(text, fmt::format("one gradient step, eta = {:.4g}", step.at("eta").get<double>()), step);
  for (const Json& row : baselines.at("preconditioned")) {
    describe(text, fmt::format("{} preconditioning steps", row.at("steps").get<int>()), row);
    describe(text, "  Neumann's series", row.at("neumann"));
    describe(text, "  without normalisation", row.at("unnormalised"));
  }
  for (const Json& row : baselines.at("ridge"))
    describe(text, fmt::format("ridge, lambda = {:g}", row.at("lambda").get<double>()), row);
  const Json& kernel = baselines.at("kernel_regression");
  describe(text, fmt::format("softmax kernel, beta = {:.4g}", kernel.at("beta").get<double>()), kernel);
  return text;
}

}  // namespace iclflow
