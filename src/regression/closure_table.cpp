#include "iclflow/regression/closure_table.hpp"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "iclflow/attention/token_estimator.hpp"
#include "iclflow/reduction/closures.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t chunks = 32;  // their scatter gives the tokens' standard error
constexpr double fewest_contexts = 1000.0;

/// mu and omega (H x I) of one kind of weights.
struct Weights {
  std::string name;
  Matrix mu;
  Matrix omega;
};

Weights blank(const char* name, const Problem& problem) {
  return {name, Matrix::Zero(problem.heads, problem.tasks()), Matrix::Zero(problem.heads, problem.tasks())};
}

Weights opposite_pair_weights(const Problem& problem) {
  Weights pair = blank("pair", problem);
  const double omega = 0.5 / std::sqrt(problem.dimension());
  for (int i = 0; i < problem.tasks(); ++i) {
    // mu = w / (2 (w^2 + phi sinh(d_x w^2) / L)), best for every task  theory: eq:opposite-pair
    const double noise = problem.noise_factor(i) * std::sinh(problem.dimension() * omega * omega);
    const double mu = omega / (2.0 * (omega * omega + noise / problem.context_length));
    pair.mu(0, i) = mu;
    pair.mu(1, i) = -mu;
    pair.omega(0, i) = omega;
    pair.omega(1, i) = -omega;
  }
  return pair;
}

std::vector<Weights> kinds_of_weights(const Problem& problem) {
  std::vector<Weights> kinds;
  if (const auto limit = dedicated_limit(problem)) {
    kinds.push_back(blank("dedicated", problem));
    for (int i = 0; i < problem.tasks(); ++i) {
      kinds.back().mu(i, i) = limit->mu[static_cast<std::size_t>(i)];
      kinds.back().omega(i, i) = limit->omega[static_cast<std::size_t>(i)];
    }
  }
  const SingleHead single = best_single_head(problem);
  kinds.push_back(blank("single-head", problem));
  for (int i = 0; i < problem.tasks(); ++i) {
    kinds.back().mu(0, i) = single.mu[static_cast<std::size_t>(i)];
    kinds.back().omega(0, i) = single.omega[static_cast<std::size_t>(i)];
  }
  kinds.push_back(opposite_pair_weights(problem));
  return kinds;
}

struct Estimate {
  double loss;
  double standard_error;
};

/// Loss of embedded weights over contexts drawn token by token; nothing when interrupted.
std::optional<Estimate> token_loss(const Problem& problem, const Weights& weights, std::uint64_t seed,
                                   std::size_t chunk, ThreadTeam& team, const EvaluationControl& control) {
  const WeightLayout layout = WeightLayout::of(problem);
  const InitialState start = balanced_start(problem, weights.mu, weights.omega);
  const ActingWeights full = acting(layout, embed(problem, rotations(problem), start));
  TokenEstimator<double> tokens(problem, layout, team);
  double sum = 0.0;
  double squares = 0.0;
  for (std::size_t k = 0; k < chunks; ++k) {
    if (control.interrupted && control.interrupted()) return std::nullopt;
    const double loss = tokens(full, {seed, Stream::evaluation, static_cast<std::uint32_t>(k), 0}, chunk).loss;
    sum += loss;
    squares += loss * loss;
  }
  const double mean = sum / chunks;
  return Estimate{mean, std::sqrt(std::max(0.0, squares / chunks - mean * mean) / (chunks - 1))};
}

Json closure_row(const Closure& closure, const Problem& problem, const Weights& weights, const Estimate& tokens) {
  const auto loss = make_population_loss(closure, problem, Coordinates::blocks(problem));
  const Eigen::VectorXd state = SpectralState{weights.mu, weights.omega}.flat();
  if (!(loss->margin(state) > 0.0)) {
    return {{"closure", closure.name}, {"loss", nullptr}, {"standard_error", nullptr}, {"z", nullptr}};
  }
  const double value = loss->value(state);
  const auto error = loss->standard_error(state);
  return {{"closure", closure.name},
          {"loss", value},
          {"standard_error", error ? Json(*error) : Json(nullptr)},
          {"z", (value - tokens.loss) / std::hypot(tokens.standard_error, error.value_or(0.0))}};
}

/// Largest |z| and chi-square of "sampled" over the cells.
Json sampled_summary(const Json& cells) {
  double largest = 0.0;
  double chi_square = 0.0;
  for (const Json& cell : cells) {
    const double z = cell.at("closures").back().at("z").get<double>();
    largest = std::max(largest, std::abs(z));
    chi_square += z * z;
  }
  const auto count = static_cast<double>(cells.size());
  return {{"cells", cells.size()},
          {"largest_z", largest},
          {"chi_square", chi_square},
          {"probability", boost::math::gamma_q(0.5 * count, 0.5 * chi_square)}};
}

Problem cell_problem(const Problem& problem, int block_dimension, int length) {
  Problem cell = problem;
  cell.task_dimensions.assign(problem.task_dimensions.size(), block_dimension);
  cell.context_length = length;
  return cell;
}

}  // namespace

Evaluated evaluate_closures(const Problem& problem, const ClosurePlan& plan, const EvaluationControl& control) {
  ThreadTeam team(control.threads);
  Json cells = Json::array();
  std::uint64_t seed = plan.seed;
  const auto rows = static_cast<double>(plan.block_dimensions.size() * plan.context_lengths.size());
  double done = 0.0;
  for (const int dimension : plan.block_dimensions) {
    for (const int length : plan.context_lengths) {
      const Problem cell = cell_problem(problem, dimension, length);
      // Losses have heavy tails where blocks are small: small contexts, which are cheap, get more of them.
      const double contexts = plan.numbers / (static_cast<double>(length) * cell.embedding());
      const auto chunk = static_cast<std::size_t>(std::max(fewest_contexts, contexts) / chunks);
      for (const Weights& weights : kinds_of_weights(cell)) {
        const auto tokens = token_loss(cell, weights, seed, chunk, team, control);
        if (!tokens) return {Json::object(), false};
        Json row = {{"weights", weights.name}, {"block_dimension", dimension}, {"context_length", length}};
        row["tokens"] = {
            {"loss", tokens->loss}, {"standard_error", tokens->standard_error}, {"contexts", chunk * chunks}};
        row["closures"] = Json::array();
        for (const auto name : closures()) {
          const Closure closure{std::string(name), {plan.contexts, seed, control.threads}};
          row["closures"].push_back(closure_row(closure, cell, weights, *tokens));
        }
        cells.push_back(std::move(row));
        ++seed;
      }
      ++done;
      if (control.progress) control.progress(done / rows);
    }
  }
  const Json sampled = sampled_summary(cells);
  return {{{"closures", {{"cells", std::move(cells)}, {"sampled", sampled}}}}, true};
}

}  // namespace iclflow
