// The training curve printed by the public program of the authors of arXiv:2402.19442 (one seed, data only) against our
// simulation of the same weights: same model, same clock, other random numbers.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "iclflow/attention/token_estimator.hpp"
#include "support/both.hpp"

using namespace iclflow;

BOOST_AUTO_TEST_SUITE(authors_curve)

namespace {

Problem authors_problem() {
  Problem p;
  p.heads = 2;
  p.task_dimensions = {10, 10};
  p.signal_variance = {1.0, 1.0};
  p.context_length = 100;
  p.response_scale = ResponseScale::unit;
  p.score_scale = ScoreScale::inverse_sqrt_embedding;
  return p;
}

InitialState authors_weights(const Problem& problem) {
  Matrix mu(2, 2);
  mu << 0.16, 0.04, 0.04, 0.16;
  InitialState start = balanced_start(problem, mu, Matrix::Constant(2, 2, problem.score_factor() * 0.04));
  start.inert = 0.2;
  return start;
}

/// Standard deviation of |yhat - y_q|^2 / 2 over contexts at the start, relative to its mean; it sets how far a printed
/// average over batches may lie from the population loss. It hardly depends on the weights (a sum of squares).
double relative_deviation(const Problem& problem, const InitialState& start) {
  ThreadTeam team(1);
  const WeightLayout layout = WeightLayout::of(problem);
  TokenEstimator<double> estimator(problem, layout, team);
  const ActingWeights blocks = acting(layout, embed(problem, rotations(problem), start));
  double sum = 0.0;
  double square = 0.0;
  constexpr std::uint32_t contexts = 2000;
  for (std::uint32_t c = 0; c < contexts; ++c) {
    const double loss = estimator(blocks, {5, Stream::training, c, 0}, 1).loss;
    sum += loss / contexts;
    square += loss * loss / contexts;
  }
  return std::sqrt(square - sum * sum) / sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(simulation_follows_the_authors_program_to_t_45, *boost::unit_test::label("slow")) {
  std::ifstream file(ICLFLOW_SOURCE_DIR "/tests/golden/authors_code_A.json");
  const auto rows = nlohmann::json::parse(file).at("rows");
  const Problem problem = authors_problem();
  const InitialState start = authors_weights(problem);
  // Their loss is averaged over the 25 steps before t: five samples a unit of time, averaged by the trapezoidal rule.
  const std::vector<double> times = both::linear_times(45.0, 225);
  SimulationOptions options;
  options.precision = Precision::single_precision;
  options.evaluation_contexts = 8000;
  options.threads = 2;
  const std::vector<std::uint64_t> seeds{1, 2, 3, 4};
  const DynamicsResult run = both::simulation(problem, start, times, 0.04, options, seeds);
  const double sampling = relative_deviation(problem, start) / std::sqrt(25.0 * 1000.0);

  const auto n = static_cast<double>(seeds.size());
  double chi_square = 0.0;
  for (std::size_t t = 1; t <= 45; ++t) {
    double mean = 0.0;
    double square = 0.0;
    double evaluation_error = 0.0;
    for (const Trajectory& member : run.members) {
      double average = 0.0;
      for (std::size_t k = 5 * t - 5; k <= 5 * t; ++k) {
        average += member["loss"].at(k)[0] * (k % 5 == 0 ? 0.1 : 0.2);
      }
      mean += average / n;
      square += average * average / n;
      evaluation_error = member["loss_standard_error"].at(5 * t)[0];
    }
    const double theirs = rows.at(t).at("loss").get<double>();
    // Errors: their one seed and the mean of ours scatter alike; their printed average samples 25 batches; our
    // evaluation set is finite. Small samples of seeds underestimate the scatter, hence Student-like room in the bound
    // of 5.
    const double scatter = (square - mean * mean) * n / (n - 1.0);
    const double error =
        std::sqrt(scatter * (1.0 + 1.0 / n) + std::pow(sampling * theirs, 2) + std::pow(evaluation_error, 2));
    const double z = (theirs - mean) / error;
    chi_square += z * z;
    BOOST_TEST(std::abs(z) < 5.0, "t = " << t << ": theirs " << theirs << ", ours " << mean << " +- " << error);
  }
  // 45 rows, neighbours correlated: mean 45, and even 20 independent degrees of freedom keep it below 120 (p < 1e-5).
  BOOST_TEST(chi_square < 120.0, "chi-square " << chi_square);

  const Trajectory& last = run.members.front();
  for (std::size_t h = 0; h < 2; ++h) {
    for (const auto& [name, key] : {std::pair{"mu", "mu"}, {"omega_block", "omega"}}) {
      const double theirs = rows.at(45).at(key).at(h).at(h).get<double>();
      BOOST_TEST(std::abs(last[name].last()[3 * h] - theirs) < 0.05 * theirs, name << " of head " << h);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
