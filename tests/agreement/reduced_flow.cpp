#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "iclflow/integrate/ode.hpp"
#include "iclflow/spectral/spectral_flow.hpp"

// The reduced flow against curves computed by an independent program (another language, another integrator, other
// coordinates), tests/golden/reduced_flow.json.

namespace {

using iclflow::Matrix;
using nlohmann::json;

Matrix matrix(const json& rows) {
  Matrix m(static_cast<Eigen::Index>(rows.size()), static_cast<Eigen::Index>(rows.at(0).size()));
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j) {
      m(i, j) = rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j)).get<double>();
    }
  }
  return m;
}

iclflow::Problem problem_of(const json& j) {
  iclflow::Problem p;
  p.heads = j.at("heads").get<int>();
  p.task_dimensions = j.at("task_dimensions").get<std::vector<int>>();
  p.context_length = j.at("context_length").get<int>();
  p.noise_variance = j.at("noise_variance").get<double>();
  const json& signal = j.at("signal_variance");
  p.signal_variance = signal.is_array() ? signal.get<std::vector<double>>()
                                        : std::vector<double>(p.task_dimensions.size(), signal.get<double>());
  if (j.at("response_scale") == "unit") p.response_scale = iclflow::ResponseScale::unit;
  if (j.at("parametrisation") == "merged") p.parametrisation = iclflow::Parametrisation::merged;
  const double score_factor = j.at("score_factor").get<double>();
  if (score_factor != 1.0) p.score_scale = iclflow::ScoreScale::inverse_sqrt_embedding;
  BOOST_REQUIRE(std::abs(p.score_factor() - score_factor) < 1e-14);
  return p;
}

void check_close(double value, double expected, const std::string& what) {
  // The reference promises 1e-6; at a relative tolerance of 1e-9 a step's error times some hundreds of steps adds less.
  BOOST_TEST(std::abs(value - expected) <= 1e-6 * std::abs(expected),
             what << ": " << value << " against " << expected << ", relative " << value / expected - 1.0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(reduced_flow)

BOOST_AUTO_TEST_CASE(follows_the_reference_curves) {
  std::ifstream file(ICLFLOW_SOURCE_DIR "/tests/golden/reduced_flow.json");
  const json cases = json::parse(file);
  BOOST_REQUIRE(cases.size() == 4);
  for (const json& reference : cases) {
    const auto name = reference.at("name").get<std::string>();
    BOOST_TEST_CONTEXT(name) {
      const auto problem = problem_of(reference.at("problem"));
      const auto start = iclflow::balanced_start(problem, matrix(reference.at("initial").at("mu")),
                                                 matrix(reference.at("initial").at("omega_block")));
      const iclflow::SpectralFlow flow(problem, start, reference.at("closure").get<std::string>());
      std::vector<double> times;
      for (const json& point : reference.at("points")) times.push_back(point.at("t").get<double>());
      BOOST_REQUIRE(times.back() == reference.at("final_time").get<double>());

      // Phases: 5, 50, 95 % of the loss between the start and the final time gone.
      const double first = reference.at("points").front().at("loss").get<double>();
      const double last = reference.at("points").back().at("loss").get<double>();
      std::vector<iclflow::Event> events;
      for (const double fraction : {0.05, 0.50, 0.95}) {
        events.push_back({"loss", first - fraction * (first - last), iclflow::Direction::falling, false});
      }
      iclflow::StepperOptions options;
      options.relative_tolerance = 1e-9;
      options.absolute_tolerance = 1e-15;
      const auto outcome = iclflow::integrate(flow, times, options, events);
      BOOST_REQUIRE(outcome.status == iclflow::Status::completed);

      const auto& run = outcome.trajectory;
      for (std::size_t n = 0; n < times.size(); ++n) {
        const json& point = reference.at("points").at(n);
        check_close(run["loss"].at(n)[0], point.at("loss").get<double>(), "loss");
        for (const auto& [observable, key] : {std::pair{"mu", "mu"}, std::pair{"omega_block", "omega_block"}}) {
          const Matrix expected = matrix(point.at(key));
          for (Eigen::Index j = 0; j < expected.size(); ++j) {
            check_close(run[observable].at(n)[static_cast<std::size_t>(j)], expected.data()[j], key);
          }
        }
      }
      const auto& phases = reference.at("phases");
      const char* keys[] = {"warm_up_end", "emergence_time", "emergence_end"};
      BOOST_REQUIRE(run.events.size() == 3);
      for (std::size_t k = 0; k < 3; ++k) check_close(run.events[k].time, phases.at(keys[k]).get<double>(), keys[k]);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
