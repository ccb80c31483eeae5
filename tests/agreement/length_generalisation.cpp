#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "iclflow/attention/paired_evaluation.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/spectral/closed_forms.hpp"
#include "iclflow/spectral/population_loss.hpp"

using namespace iclflow;

namespace {

/// He, Pan, Chen, Yang 2025 (arXiv:2503.12734): one task, d = 5, sigma^2 = 0.1, L = 40, x ~ N(0, I), g ~ N(0, I/d).
Problem public_setting(int length) {
  Problem problem;
  problem.heads = 2;
  problem.task_dimensions = {5};
  problem.context_length = length;
  problem.noise_variance = 0.1;
  return problem;
}

std::vector<PairedEstimate> evaluate(const Problem& problem, const Shift& shift, std::size_t contexts,
                                     const std::vector<Estimator>& estimators, const std::vector<WeightGroup>& groups) {
  ThreadTeam team(1);
  PairedEvaluation paired(problem, shift, 1, contexts, estimators, groups, team);
  while (paired.advance()) {
  }
  return paired.estimates();
}

WeightGroup group(const Problem& problem, const Matrix& mu, const Matrix& omega) {
  const Rotations basis = rotations(problem);
  const Eigen::VectorXd weights = embed(problem, basis, balanced_start(problem, mu, omega));
  WeightGroup group{"weights", {}};
  group.members.emplace_back(acting(WeightLayout::of(problem), weights), basis);
  return group;
}

Matrix column(double first, double second) {
  Matrix m(2, 1);
  m << first, second;
  return m;
}

const std::vector<Estimator> exact_estimators{{"least-squares", EstimatorKind::least_squares},
                                              {"gradient-step", EstimatorKind::gradient_step},
                                              {"debiased-gradient-step", EstimatorKind::debiased_gradient_step},
                                              {"averaging", EstimatorKind::averaging},
                                              {"given", EstimatorKind::gradient_step, 0.5},
                                              {"given-debiased", EstimatorKind::debiased_gradient_step, 0.5}};

}  // namespace

BOOST_AUTO_TEST_SUITE(length_generalisation)

/// Quoted as 2 ell + sigma^2 in three digits: |ours - quoted| <= half a unit of the last digit + 4 standard errors.
/// The Bayes-optimal ridge (lambda = d sigma^2) has 0.114452(5), by 4e6 contexts, and would be printed as 0.114; the
/// quoted 0.115 is what ridge has with lambda = sigma^2, and least squares.
BOOST_AUTO_TEST_CASE(public_figures, *boost::unit_test::label("slow")) {
  const Problem problem = public_setting(40);
  const std::vector<Estimator> estimators{{"ridge", EstimatorKind::ridge, std::nullopt, 0.1},
                                          {"step", EstimatorKind::gradient_step, 0.897},
                                          {"debiased", EstimatorKind::debiased_gradient_step, 0.897},
                                          {"bayes", EstimatorKind::ridge}};
  const std::vector<WeightGroup> groups{group(problem, column(3.45, -3.45), column(0.13, -0.13))};
  const auto found = evaluate(problem, {}, 400000, estimators, groups);
  const PairedEstimate& bayes = found[3];
  BOOST_TEST(std::abs(2.0 * bayes.loss + 0.1 - 0.114452) < 4.0 * std::hypot(2.0 * bayes.contexts_error, 5e-6));
  BOOST_TEST(bayes.loss < found[0].loss);
  const std::vector<double> quoted{0.115, 0.241, 0.243, 0.114452, 0.243};
  for (std::size_t k = 0; k < quoted.size(); ++k) {
    const double ours = 2.0 * found[k].loss + problem.noise_variance;
    const double error = 2.0 * found[k].standard_error();
    BOOST_TEST_MESSAGE("quoted " << quoted[k] << ", ours " << ours << " +- " << error);
    BOOST_TEST(std::abs(ours - quoted[k]) <= 0.0005 + 4.0 * error,
               "quoted " << quoted[k] << ", ours " << ours << " +- " << error);
    BOOST_TEST(error < 0.0005);  // else three digits could not be told apart
  }
}

/// Sampled losses against closed forms that are exact at every d_i and L: |z| < 4.5 for 40 cells.
BOOST_AUTO_TEST_CASE(estimators_have_their_exact_losses) {
  Problem problem = public_setting(1);
  problem.task_dimensions = {3, 8};
  problem.signal_variance = {1.0, 0.4};
  for (const int length : {1, 14, 40, 200}) {
    problem.context_length = length;
    const auto found = evaluate(problem, {}, 4000, exact_estimators, {});
    for (std::size_t k = 0; k < exact_estimators.size(); ++k) {
      const Estimator& estimator = exact_estimators[k];
      if (finite_moments(estimator, problem, problem.noise_variance) < 2) continue;
      const double z = (found[k].loss - exact_loss(estimator, problem).value()) / found[k].contexts_error;
      BOOST_TEST(std::abs(z) < 4.5, estimator.name << " at L = " << length << ": z = " << z);
    }
  }
  problem.context_length = 4;  // one task has no mean at L = 4, d = 3
  BOOST_TEST(!exact_loss(exact_estimators[0], problem).has_value());
  BOOST_TEST(finite_moments(exact_estimators[0], problem, 0.1) == 0);
  problem.context_length = 5;
  BOOST_TEST(finite_moments(exact_estimators[0], problem, 0.1) == 1);
}

/// The best steps of theory/05 and the one-step baseline of `prediction` are the same numbers.
BOOST_AUTO_TEST_CASE(closed_forms_agree_with_each_other) {
  const Problem problem = public_setting(40);
  const double step = exact_loss({"", EstimatorKind::gradient_step}, problem).value();
  BOOST_TEST(std::abs(step / gradient_step_loss(problem) - 1.0) < 1e-14);
  const double debiased = exact_loss({"", EstimatorKind::debiased_gradient_step}, problem).value();
  BOOST_TEST(std::abs(debiased - 0.5 * 6.5 / 45.5) < 1e-15);  // (P/2)(d phi + 1)/(L + d phi)
}

/// Asymptotic formula against samples: relative error of at most 0.5/d_i (theory/05 measured up to 0.44/d_i).
BOOST_AUTO_TEST_CASE(ridge_has_its_asymptotic_loss) {
  for (const int d : {5, 20}) {
    for (const double ratio : {0.5, 2.0, 4.0}) {
      Problem problem = public_setting(static_cast<int>(ratio * d));
      problem.task_dimensions = {d};
      problem.noise_variance = 0.25;
      const auto found = evaluate(problem, {}, 4000, {{"ridge", EstimatorKind::ridge}}, {});
      const double gap = found[0].loss / ridge_loss(problem) - 1.0;
      const double error = found[0].contexts_error / found[0].loss;
      BOOST_TEST(gap > -4.0 * error, "the formula lies below the mean");
      BOOST_TEST(gap < 0.5 / d + 4.0 * error, "d = " << d << ", L/d = " << ratio << ": " << gap);
    }
  }
}

/// No linear estimator beats the Bayes-optimal one on any draw's average; on common contexts the order is sharp.
BOOST_AUTO_TEST_CASE(ridge_is_best_under_the_training_law) {
  const Problem problem = public_setting(12);
  std::vector<Estimator> estimators{{"ridge", EstimatorKind::ridge}};
  estimators.insert(estimators.end(), exact_estimators.begin(), exact_estimators.end());
  const auto found = evaluate(problem, {}, 2000, estimators, {});
  for (std::size_t k = 1; k < found.size(); ++k) BOOST_TEST(found[k].loss > found[0].loss, estimators[k].name);
}

/// The closure at other lengths with mu and omega fixed. Its errors (theory/03): O(1/d) + O(e^a/L) of the variance
/// term, a = d omega^2. With omega^2 d = 0.2, d = 20 the bound (2/d + e^a/L) of that term plus 4 standard errors holds.
BOOST_AUTO_TEST_CASE(fixed_weights_follow_the_closure_over_lengths) {
  for (const bool pair : {true, false}) {
    for (const int length : {50, 200, 800}) {
      Problem problem = public_setting(length);
      problem.task_dimensions = {20};
      const Matrix mu = pair ? column(4.0, -4.0) : column(8.0, 0.0);
      const Matrix omega = pair ? column(0.1, -0.1) : column(0.1, 0.0);
      const auto found = evaluate(problem, {}, 4000, {}, {group(problem, mu, omega)});
      const auto closure = make_population_loss("large-context", problem, Coordinates::full(problem));
      const double predicted = closure->value(SpectralState{mu, expand_blocks(problem, omega)}.flat());
      const double z = 0.2;
      // (P/2) {(1 - m w)^2 + m^2 (phi/L) E}, E = sinh z for the pair, e^z for one head
      const double variance = 0.5 * 64.0 * problem.noise_factor(0) / length * (pair ? std::sinh(z) : std::exp(z));
      BOOST_TEST(std::abs(predicted - (0.5 * 0.04 + variance)) < 1e-12);
      const double allowed = variance * (2.0 / 20.0 + std::exp(z) / length) + 4.0 * found[0].contexts_error;
      BOOST_TEST(std::abs(found[0].loss - predicted) < allowed, (pair ? "pair" : "single head")
                                                                    << " at L = " << length << ": " << found[0].loss
                                                                    << " against " << predicted);
    }
  }
}

/// Scaling all inputs by c is exact for least squares without noise and multiplies the loss of the prediction 0 by c^2;
/// an orthogonal query leaves every estimator in the covariates' span with exactly the loss of the prediction 0.
BOOST_AUTO_TEST_CASE(shifts_do_what_they_say) {
  Problem problem = public_setting(3);
  Shift orthogonal;
  orthogonal.name = "orthogonal";
  orthogonal.orthogonal_queries = true;
  std::vector<Estimator> estimators{{"ridge", EstimatorKind::ridge}};
  estimators.insert(estimators.end(), exact_estimators.begin(), exact_estimators.end());
  const auto unknown = evaluate(problem, orthogonal, 4000, estimators, {});
  for (std::size_t k = 0; k < unknown.size(); ++k) {
    BOOST_TEST(std::abs(unknown[k].loss - 0.5) < 4.0 * unknown[k].contexts_error, estimators[k].name);
    BOOST_TEST(std::abs(unknown[k].loss / unknown[0].loss - 1.0) < 1e-12, estimators[k].name);  // rounding
  }
  problem.noise_variance = 0.0;
  Shift scaled;
  scaled.name = "scaled";
  scaled.input_scale = 2.0;
  const std::vector<Estimator> zero{{"zero", EstimatorKind::gradient_step, 0.0},
                                    {"least-squares", EstimatorKind::least_squares}};
  const auto once = evaluate(problem, {}, 100, zero, {});
  const auto twice = evaluate(problem, scaled, 100, zero, {});
  for (std::size_t k = 0; k < 2; ++k) BOOST_TEST(std::abs(twice[k].loss / once[k].loss - 4.0) < 1e-11);
  Shift noisy;
  noisy.name = "noisy";
  noisy.noise_variance = 0.1;
  const auto as_trained = evaluate(public_setting(9), {}, 100, {{"ridge", EstimatorKind::ridge}}, {});
  const auto other = evaluate(public_setting(9), noisy, 100, {{"ridge", EstimatorKind::ridge}}, {});
  BOOST_TEST(other[0].loss == as_trained[0].loss);
}

BOOST_AUTO_TEST_SUITE_END()
