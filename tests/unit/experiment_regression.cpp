#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/experiment/experiment.hpp"
#include "iclflow/regression/flow_phases.hpp"
#include "iclflow/regression/regression.hpp"

using namespace iclflow;

namespace {

Systems only_regression() {
  Systems systems;
  systems.push_back(make_regression());
  return systems;
}

Experiment parse(const std::string& text) { return make_experiment(parse_document(text, "f.toml"), only_regression()); }

const std::string problem = "[problem]\nheads = 3\ntask_dimensions = [2, 3]\ncontext_length = 40\n";
const std::string theory = "[time]\nfinal = 1\nsamples = 2\n[[dynamics]]\nkind = 'spectral-flow'\n";

/// y' = -y with loss y: all phase times are logarithms.
class Decay final : public OdeSystem {
 public:
  [[nodiscard]] Eigen::VectorXd initial() const override { return Eigen::VectorXd::Ones(1); }
  void declare(Trajectory& run) const override { run.declare("loss", "y"); }
  void observe(const Eigen::VectorXd& y, Trajectory& run) const override { run.append(0, y(0)); }
  [[nodiscard]] double quantity(const std::string& /*name*/, const Eigen::VectorXd& y) const override { return y(0); }
  void velocity(const Eigen::VectorXd& y, Eigen::VectorXd& rate) const override { rate = -y; }
  [[nodiscard]] std::string component(Eigen::Index /*i*/) const override { return "y"; }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_regression)

BOOST_AUTO_TEST_CASE(every_default_is_written_and_reads_back_to_the_same_text) {
  const std::vector<std::string> starts{
      "",
      "[initial]\npreset = 'authors'\n",
      "[initial]\npreset = 'random'\nscale = 0.1\n",
      "[initial]\npreset = 'aligned'\nscale = 0.1\nimbalance = 0.5\n",
      "[initial]\nmu = [[1, 2], [3, 4], [5, 6]]\nomega = [[1, 2], [3, 4], [5, 6]]\n",
      "[initial]\nmu = [[1, 2], [3, 4], [5, 6]]\nomega = [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0.1]]\n"};
  const std::vector<std::string> dynamics{
      theory, theory + "stepper = 'rk4'\nstep = 0.01\n",
      theory + "[[dynamics]]\nkind = 'attention'\nlearning_rate = 0.1\n[expect]\nmu_gap = 1\n",
      theory + "[[dynamics]]\nkind = 'attention'\nmethod = 'gradient-flow'\nseed = 4\n",
      "[[dynamics]]\nkind = 'fixed'\n"};
  for (const std::string& start : starts) {
    for (const std::string& rest : dynamics) {
      const std::string resolved = parse(problem + start + rest).resolved();
      BOOST_TEST(parse(resolved).resolved() == resolved);
    }
  }
}

BOOST_AUTO_TEST_CASE(omega_on_blocks_and_in_full_are_the_same_experiment) {
  const std::string mu = "[initial]\nmu = [[1, 2], [3, 4], [5, 6]]\n";
  const auto blocks = parse(problem + mu + "omega = [[1, 2], [3, 4], [5, 6]]\n");
  const auto full = parse(problem + mu + "omega = [[1, 1, 2, 2, 2], [3, 3, 4, 4, 4], [5, 5, 6, 6, 6]]\n");
  BOOST_TEST(blocks.resolved() == full.resolved());
}

BOOST_AUTO_TEST_CASE(merged_weights_have_no_split_keys) {
  const std::string merged = problem + "parametrisation = 'merged'\n";
  BOOST_TEST(parse(merged).resolved().find("score_scale") == std::string::npos);
  for (const char* key : {"imbalance = 0.1\n", "inert = 0.1\n"}) {
    BOOST_CHECK_THROW(static_cast<void>(parse(merged + "[initial]\npreset = 'random'\nscale = 0.1\n" + key)),
                      InputError);
  }
}

BOOST_AUTO_TEST_CASE(phases_are_located_to_the_tolerance_of_the_integration) {
  const double end = std::exp(-5.0);
  const Phases phases = locate_phases(Decay(), StepperOptions{}, 5.0, 1.0, end);
  // loss = 1 - f (1 - e^-5) at t = -log of it; events are good to about 10 relative tolerances of the loss, which
  // falls as fast as its own value: dt = d loss / loss
  const double tolerance = 10.0 * StepperOptions{}.relative_tolerance;
  BOOST_REQUIRE(phases.warm_up_end.has_value());
  BOOST_TEST(std::abs(*phases.warm_up_end + std::log(1.0 - 0.05 * (1.0 - end))) < tolerance);
  BOOST_TEST(std::abs(*phases.emergence_time + std::log(1.0 - 0.5 * (1.0 - end))) < tolerance);
  BOOST_TEST(std::abs(*phases.emergence_end + std::log(1.0 - 0.95 * (1.0 - end))) < tolerance);
  BOOST_TEST(!locate_phases(Decay(), StepperOptions{}, 5.0, 1.0, 1.0).emergence_time.has_value());
}

BOOST_AUTO_TEST_SUITE_END()
