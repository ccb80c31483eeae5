#include <Eigen/LU>
#include <Eigen/QR>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "iclflow/mesa/baselines.hpp"
#include "iclflow/mesa/preconditioned.hpp"

using namespace iclflow;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using Json = nlohmann::ordered_json;

namespace {

Json sampled(const BaselinePlan& plan, const SequenceProblem& problem, int threads = 1) {
  return sampled_baselines(plan, problem, threads, {});
}

double loss(const Json& entry) { return entry.at("loss").get<double>(); }
double error(const Json& entry) { return entry.at("standard_error").get<double>(); }

/// Distance from a published loss, in the standard errors of both; 4.5 is passed in 7e-6 of cases.
bool near(const Json& entry, double published, double published_error) {
  const double allowed = 4.5 * std::hypot(error(entry), published_error);
  BOOST_TEST_MESSAGE(loss(entry) << " +- " << error(entry) << ", published " << published);
  return std::abs(loss(entry) - published) < allowed;
}

/// The moments at one query, written out.
struct Query {
  MatrixXd M, G;
  VectorXd state, target;
};

std::vector<Query> queries(const SequenceSet& set) {
  std::vector<Query> all;
  for (std::size_t k = 0; k < set.count; ++k) {
    const Eigen::Map<const MatrixXd> s(set.state(k, 0), set.dimension, set.length + 1);
    for (int t = 0; t < set.length; ++t) {
      const MatrixXd before = s.leftCols(t);
      all.push_back({before * before.transpose(), s.middleCols(1, t) * before.transpose(), s.col(t), s.col(t + 1)});
    }
  }
  return all;
}

template <typename Predict>
double plain_loss(const std::vector<Query>& all, Predict predict) {
  double sum = 0.0;
  for (const Query& query : all) sum += 0.5 * (predict(query) - query.target).squaredNorm();
  return sum / static_cast<double>(all.size());
}

VectorXd run(const Recursion& recursion, const MatrixXd& A, const VectorXd& b) {
  VectorXd z = recursion.initial * b, before = z;
  for (std::size_t k = 0; k < recursion.alpha.size(); ++k) {
    const VectorXd next = z - recursion.alpha[k] * (A * z - b) + recursion.beta[k] * (z - before);
    before = z;
    z = next;
  }
  return z;
}

BaselinePlan small_plan() {
  BaselinePlan plan;
  plan.sequences = 70;  // two parts and a rest
  plan.ridge = {0.5, 20.0};
  plan.preconditioned_steps = {1, 3};
  plan.preconditioned_lambda = 2.0;
  return plan;
}

SequenceProblem small_problem() {
  SequenceProblem problem;
  problem.state_dimension = 3;
  problem.length = 7;
  return problem;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(mesa_baselines)

// 50 targets, U(-1, 1), noise .01: the reference values, with the errors they are quoted with.
BOOST_AUTO_TEST_CASE(reference_values) {
  BaselinePlan plan;
  plan.ridge = {0.1, 1.0, 10.0, 1000.0};
  plan.preconditioned_steps = {0, 1, 2, 3, 6};
  plan.clip = 4.0;
  Json json = sampled(plan, {});
  BOOST_TEST(near(json["zero"], 1.6794, 0.0));
  BOOST_TEST(near(json["gradient_step"], 0.904, 0.002));
  BOOST_TEST(near(json["gradient_step"]["clipped"], 0.902, 0.002));
  const double ridge[] = {0.6237, 0.2470, 0.1895, 0.1846};
  for (std::size_t k = 0; k < 4; ++k) BOOST_TEST(near(json["ridge"][k], ridge[k], 0.0005));
  const double preconditioned[] = {0.602, 0.383, 0.295, 0.256, 0.223};
  for (std::size_t k = 0; k < 5; ++k) BOOST_TEST(near(json["preconditioned"][k], preconditioned[k], 0.001));
  const double unnormalised[] = {0.900, 0.655, 0.520, 0.440, 0.309};
  for (std::size_t k = 0; k < 5; ++k) {
    const Json& row = json["preconditioned"][k];
    // published without an error: taken to be as uncertain as ours
    BOOST_TEST(near(row["unnormalised"], unnormalised[k], error(row["unnormalised"])));
    BOOST_TEST(loss(row) - loss(row["least_squares"]) < 1e-6 * loss(row));
    BOOST_TEST(loss(row) < loss(row["neumann"]) - 10.0 * error(row));
  }
  // eta = E g / E h of sums over sequences; its error from the spread of eight smaller samples
  double sum = 0.0, squares = 0.0;
  plan.sequences = 500;
  plan.preconditioned_steps = {0};
  plan.ridge = {1.0};
  for (plan.seed = 2; plan.seed < 10; ++plan.seed) {
    const double eta = sampled(plan, {})["gradient_step"]["eta"].get<double>();
    sum += eta / 8.0;
    squares += eta * eta / 8.0;
  }
  const double spread = std::sqrt((squares - sum * sum) / 7.0);
  BOOST_TEST(std::abs(sum - 0.0321) < 4.5 * std::hypot(spread, 0.00005));
}

BOOST_AUTO_TEST_CASE(a_tight_clip_raises_the_best_rate) {
  BaselinePlan plan;
  plan.sequences = 1000;
  plan.clip = 1.5;
  plan.preconditioned_steps = {0};
  Json json = sampled(plan, {});
  const Json& clipped = json["gradient_step"]["clipped"];
  BOOST_TEST(near(clipped, 0.839, 0.002));
  BOOST_TEST(clipped["eta"].get<double>() > 1.15 * json["gradient_step"]["eta"].get<double>());
}

// Every entry against the formulas written with whole matrices; rounding of sums of some 500 terms.
BOOST_AUTO_TEST_CASE(entries_are_their_formulas) {
  const SequenceProblem problem = small_problem();
  const BaselinePlan plan = small_plan();
  const Json json = sampled(plan, problem);
  const auto all = queries(draw_sequences(problem, plan.seed, Stream::evaluation, 0, 0, plan.sequences));
  const auto same = [](double a, double b) { return std::abs(a - b) < 1e-11 * std::abs(b); };
  BOOST_TEST(same(loss(json.at("zero")), plain_loss(all, [](const Query&) -> VectorXd { return VectorXd::Zero(3); })));
  const double eta = json.at("gradient_step").at("eta");
  const auto step = [&](double rate) {
    return plain_loss(all, [rate](const Query& query) -> VectorXd { return rate * query.G * query.state; });
  };
  BOOST_TEST(same(loss(json.at("gradient_step")), step(eta)));
  // a minimum: the loss is quadratic in the rate
  BOOST_TEST(same(step(1.1 * eta), step(0.9 * eta)));
  for (std::size_t k = 0; k < 2; ++k) {
    const double ridge = 1.0 / plan.ridge[k];
    BOOST_TEST(same(loss(json.at("ridge")[k]), plain_loss(all, [ridge](const Query& query) -> VectorXd {
                      return query.G * (query.M + ridge * MatrixXd::Identity(3, 3)).inverse() * query.state;
                    })));
  }
  for (const Json& row : json.at("preconditioned")) {
    const Recursion trained{row.at("initial"), row.at("alpha"), row.at("beta")};
    const auto iterated = [&](const Recursion& recursion) {
      return plain_loss(all, [&](const Query& query) -> VectorXd {
        const MatrixXd A = query.M + 0.5 * MatrixXd::Identity(3, 3);
        return query.G * run(recursion, A / A.norm(), query.state / A.norm());
      });
    };
    BOOST_TEST(same(loss(row), iterated(trained)));
    BOOST_TEST(same(loss(row.at("neumann")), iterated(Recursion::neumann(row.at("steps")))));
  }
  const double beta = json.at("kernel_regression").at("beta");
  const SequenceSet set = draw_sequences(problem, plan.seed, Stream::evaluation, 0, 0, plan.sequences);
  double kernel = 0.0;
  for (std::size_t k = 0; k < set.count; ++k) {
    const Eigen::Map<const MatrixXd> s(set.state(k, 0), 3, 8);
    for (int t = 0; t < 7; ++t) {
      const VectorXd weights = (beta * s.leftCols(t).transpose() * s.col(t)).array().exp();
      const VectorXd prediction = t == 0 ? VectorXd::Zero(3) : VectorXd(s.middleCols(1, t) * weights / weights.sum());
      kernel += 0.5 * (prediction - s.col(t + 1)).squaredNorm() / 490.0;
    }
  }
  BOOST_TEST(same(loss(json.at("kernel_regression")), kernel));
}

// The best polynomials, by least squares on powers of the matrices; conditions of at most 1e4.
BOOST_AUTO_TEST_CASE(best_polynomials_are_least_squares) {
  const SequenceProblem problem = small_problem();
  const BaselinePlan plan = small_plan();
  const Json json = sampled(plan, problem);
  const auto all = queries(draw_sequences(problem, plan.seed, Stream::evaluation, 0, 0, plan.sequences));
  const auto rows = static_cast<Eigen::Index>(3 * all.size());
  for (const Json& row : json.at("preconditioned")) {
    const int steps = row.at("steps");
    for (const bool normalised : {true, false}) {
      MatrixXd features(rows, steps + 1);
      VectorXd targets(rows);
      for (std::size_t k = 0; k < all.size(); ++k) {
        MatrixXd A = all[k].M;
        if (normalised) A += 0.5 * MatrixXd::Identity(3, 3);
        const double norm = normalised ? A.norm() : 3.0;
        VectorXd z = all[k].state / norm;
        const auto at = static_cast<Eigen::Index>(3 * k);
        for (int column = 0; column <= steps; ++column, z = A * z / norm)
          features.col(column).segment(at, 3) = all[k].G * z;
        targets.segment(at, 3) = all[k].target;
      }
      const VectorXd best = features.colPivHouseholderQr().solve(targets);
      const double expected = 1.5 * (features * best - targets).squaredNorm() / static_cast<double>(rows);
      const Json& entry = row.at(normalised ? "least_squares" : "unnormalised");
      BOOST_TEST(std::abs(loss(entry) - expected) < 1e-8 * expected);
      if (normalised) BOOST_TEST(std::abs(loss(row) - expected) < 1e-6 * expected);
    }
  }
}

// Three observations of five numbers determine fifteen hidden ones, and seventeen pairs of them the map: without noise
// ridge with a large lambda, which leaves 1 / (lambda times the least eigenvalue of M), then predicts exactly; with one
// observation as input it cannot. The first three states make no pair.
BOOST_AUTO_TEST_CASE(stacked_states_predict_partial_observations) {
  SequenceProblem problem;
  problem.kind = SequenceKind::partial;
  problem.state_dimension = 5;
  problem.hidden_dimension = 15;
  problem.noise_deviation = 0.0;
  BaselinePlan plan;
  plan.sequences = 40;
  plan.ridge = {1e7};
  plan.preconditioned_steps = {1};
  const Json automatic = sampled(plan, problem);
  BOOST_TEST(automatic.at("stacked") == 3);
  const auto at = [](const Json& json, std::size_t t) { return json.at("positions")[t].get<double>(); };
  const Json& ridge = automatic.at("ridge")[0];
  for (std::size_t t = 0; t < 3; ++t) BOOST_TEST(at(ridge, t) == at(automatic.at("zero"), t));
  BOOST_TEST(at(ridge, 49) < 1e-6 * at(automatic.at("zero"), 49));
  plan.stacked = 1;
  const Json single = sampled(plan, problem);
  BOOST_TEST(at(single.at("ridge")[0], 49) > 0.1 * at(single.at("zero"), 49));
}

BOOST_AUTO_TEST_CASE(positions_and_errors_belong_to_the_loss) {
  const SequenceProblem problem = small_problem();
  BaselinePlan plan = small_plan();
  plan.clip = 0.3;
  const Json json = sampled(plan, problem);
  const SequenceSet set = draw_sequences(problem, plan.seed, Stream::evaluation, 0, 0, plan.sequences);
  for (const Json& entry : {json.at("zero"), json.at("ridge")[1], json.at("preconditioned")[0],
                            json.at("ridge")[1].at("clipped"), json.at("gradient_step").at("clipped")}) {
    double mean = 0.0;
    for (const Json& position : entry.at("positions")) mean += position.get<double>() / 7.0;
    BOOST_TEST(std::abs(mean - loss(entry)) < 1e-13);
  }
  double sum = 0.0, squares = 0.0, last = 0.0;
  for (std::size_t k = 0; k < set.count; ++k) {
    const Eigen::Map<const MatrixXd> s(set.state(k, 1), 3, 7);
    const double one = 0.5 * s.squaredNorm() / 7.0;
    sum += one / 70.0;
    squares += one * one / 70.0;
    last += 0.5 * s.col(6).squaredNorm() / 70.0;
  }
  BOOST_TEST(std::abs(error(json.at("zero")) - std::sqrt((squares - sum * sum) / 69.0)) < 1e-13);
  BOOST_TEST(std::abs(json.at("zero").at("positions")[6].get<double>() - last) < 1e-13);
  // the clipped ridge, written out
  double clipped = 0.0;
  for (const Query& query : queries(set)) {
    const VectorXd raw = query.G * (query.M + 0.05 * MatrixXd::Identity(3, 3)).inverse() * query.state;
    clipped += 0.5 * (raw.cwiseMax(-0.3).cwiseMin(0.3) - query.target).squaredNorm() / 490.0;
  }
  BOOST_TEST(std::abs(loss(json.at("ridge")[1].at("clipped")) - clipped) < 1e-12);
  BOOST_TEST(describe_baselines(json).find("clipped to 0.3") != std::string::npos);
}

// z = p(A) b holds for every A, so for numbers; degree K, so K + 1 of them would do.
BOOST_AUTO_TEST_CASE(a_recursion_is_its_polynomial) {
  const Recursion recursion{1.7, {0.9, 1.4, 2.1, 0.3}, {0.0, 0.2, -0.5, 0.8}};
  const Recursion neumann = Recursion::neumann(4);
  for (const double x : {0.0, 0.1, 0.35, 0.6, 0.8, 1.0}) {
    VectorXd legendre(5);
    const double y = 2.0 * x - 1.0;
    legendre << 1.0, y, (3.0 * y * y - 1.0) / 2.0, (5.0 * y * y * y - 3.0 * y) / 2.0,
        (35.0 * y * y * y * y - 30.0 * y * y + 3.0) / 8.0;
    const MatrixXd A = MatrixXd::Constant(1, 1, x);
    BOOST_TEST(std::abs(recursion.polynomial().dot(legendre) - run(recursion, A, VectorXd::Ones(1))(0)) < 1e-13);
    const double series = 1.0 + (1.0 - x) * (1.0 + (1.0 - x) * (1.0 + (1.0 - x) * (1.0 + (1.0 - x))));
    BOOST_TEST(std::abs(neumann.polynomial().dot(legendre) - series) < 1e-13);
  }
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_number) {
  BaselinePlan plan = small_plan();
  plan.sequences = 300;
  plan.clip = 1.0;
  BOOST_TEST(sampled(plan, small_problem(), 1).dump() == sampled(plan, small_problem(), 3).dump());
  BOOST_TEST(sampled_baselines(plan, small_problem(), 2, [] { return true; }).is_null());
}

BOOST_AUTO_TEST_CASE(the_table_is_read_and_written) {
  const auto read = [](const std::string& text) {
    const Document document = parse_document(text, "f.toml");
    return read_baselines(Section(document), 1.5);
  };
  BOOST_TEST(!read("x = 1").has_value());
  const auto defaults = read("[baselines]");
  BOOST_TEST(defaults->sequences == 4000U);
  BOOST_TEST(defaults->clip == 1.5);
  const auto given = read(
      "[baselines]\nsequences = 100\nseed = 7\nridge = [2.0]\npreconditioned_steps = [0, 4]\n"
      "preconditioned_lambda = 5.0\nstacked = 2\nclip = 0");
  TomlText text;
  resolve(*given, text);
  const auto again = read(text.text());
  BOOST_TEST(again->sequences == 100U);
  BOOST_TEST(again->seed == 7U);
  BOOST_TEST(again->ridge == std::vector<double>{2.0});
  BOOST_TEST(again->preconditioned_steps == (std::vector<int>{0, 4}));
  BOOST_TEST(again->preconditioned_lambda == 5.0);
  BOOST_TEST(again->stacked == 2);
  BOOST_TEST(again->clip == 0.0);
  for (const char* wrong : {"sequences = 1", "ridge = [0.0]", "ridge = [1e12]", "preconditioned_steps = [-1]",
                            "clip = -1.0", "steps = 3"}) {
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(read(std::string("[baselines]\n") + wrong)), InputError,
        [](const InputError& e) { return std::string(e.what()).starts_with("f.toml:2: key 'baselines."); });
  }
}

BOOST_AUTO_TEST_SUITE_END()
