// Experiment files of the two linear reductions: reading, refusing, running, summarising.
#include <boost/test/unit_test.hpp>

#include "iclflow/experiment/experiment.hpp"
#include "iclflow/mesa/autoregressive.hpp"
#include "iclflow/regression/regression.hpp"

using namespace iclflow;

namespace {

Experiment parse(const std::string& text) {
  Systems systems;
  systems.push_back(make_regression());
  systems.push_back(make_autoregressive());
  return make_experiment(parse_document(text, "f.toml"), systems);
}

const std::string sequence =
    "system = 'autoregressive'\n[sequence]\nkind = 'unitary'\nstate_dimension = 2\nlength = 6\n";
const std::string linear = "[problem]\nattention = 'linear'\nheads = 2\ncovariance = [1.0, 0.5]\ncontext_length = 9\n";
const std::string both =
    "[time]\nfinal = 0.04\nsamples = 2\n[[dynamics]]\nname = 'theory'\nkind = 'spectral-flow'\n"
    "[[dynamics]]\nname = 'simulation'\nkind = 'attention'\nlearning_rate = 0.01\nbatch = 20\nseeds = [1, 2]\n"
    "evaluation_contexts = 20\n";

DynamicsResult evolve(const Experiment& experiment, std::size_t k, int threads) {
  const DynamicsPart& part = experiment.study->dynamics().at(k);
  DynamicsResult result;
  result.name = part.name;
  result.kind = part.kind;
  result.variant = part.variant;
  result.seeds = part.seeds;
  for (std::size_t member = 0; member < part.members(); ++member) {
    Outcome outcome = experiment.study->evolve(k, member, experiment.times(), {}, threads, {});
    BOOST_REQUIRE(outcome.status == Status::completed);
    result.members.push_back(std::move(outcome.trajectory));
  }
  return result;
}

void refuses(const std::string& text, const std::string& key, const std::string& says) {
  BOOST_CHECK_EXCEPTION(static_cast<void>(parse(text)), InputError, [&](const InputError& error) {
    const std::string what = error.what();
    BOOST_TEST_MESSAGE(what);
    return what.find("'" + key + "'") != std::string::npos && what.find(says) != std::string::npos;
  });
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_linear)

BOOST_AUTO_TEST_CASE(every_default_is_written_and_reads_back_to_the_same_text) {
  const std::string random = "parametrisation = 'merged'\n[initial]\npreset = 'random'\nscale = 0.1\n";
  const std::string rotation = with(with(sequence, "unitary", "rotation"), "length", "initial = 'sparse'\nlength");
  for (const std::string& head :
       {sequence, sequence + "[initial]\na = -0.1\nperturbation = 0.01\n", rotation, linear, linear + random}) {
    const std::string resolved = parse(head + both).resolved();
    BOOST_TEST(parse(resolved).resolved() == resolved);
  }
}

BOOST_AUTO_TEST_CASE(mistakes_are_named) {
  refuses(with(sequence, "unitary", "unitari") + both, "sequence.kind", "rotation");
  refuses(with(with(sequence, "unitary", "rotation"), "= 2", "= 3") + both, "sequence.state_dimension", "even");
  refuses(with(sequence, "length = 6", "length = 2") + both, "sequence.length", "3");
  refuses(sequence + "initial = 'ones'\n" + both, "sequence.initial", "odd exponent");
  refuses(sequence + "initial_scale = 1e-30\n" + both, "sequence.initial_scale", "sixth power");
  refuses(sequence + "[model]\nlayers = ['linear', 'linear']\n" + both, "model.layers", "one linear layer");
  refuses(sequence + both + "closure = 'large-context'\n", "dynamics[1].closure", "not known");
  refuses(sequence + both + "[expect]\nmu_gap = 1\n", "expect.mu_gap", "product_gap");
  refuses(with(linear, "[1.0, 0.5]", "[1.0, -0.5]") + both, "problem.covariance[1]", "above 0");
  refuses(linear + "noise_variance = 1\n" + both, "problem.noise_variance", "not known");
  refuses(linear + "[initial]\npreset = 'authors'\n" + both, "initial.preset", "aligned");
  refuses(with(linear + both, "'spectral-flow'", "'spectral-flow'\nstepper = 'rosenbrock4'"), "dynamics[0].stepper",
          "dopri5");
  refuses(linear + both + "[[event]]\nquantity = 'modes[2]'\nlevel = 1\n", "event[0].quantity", "d = 0..1");
}

BOOST_AUTO_TEST_CASE(theory_and_simulation_are_compared, *boost::unit_test::label("parallel")) {
  for (const std::string& head : {sequence, linear}) {
    const Experiment experiment = parse(head + both);
    const std::vector<DynamicsResult> results{evolve(experiment, 0, 1), evolve(experiment, 1, 1)};
    const DynamicsResult again = evolve(experiment, 1, 3);
    for (std::size_t k = 0; k < again.members[1].observables.size(); ++k) {
      BOOST_TEST(again.members[1].observables[k].values == results[1].members[1].observables[k].values);
    }
    const auto summary = experiment.study->summarise(results);
    BOOST_REQUIRE(summary.at("comparison").size() == 1U);
    const auto& pair = summary.at("comparison")[0];
    BOOST_TEST(pair.at("theory") == "theory");
    BOOST_TEST(pair.at("loss_gap").get<double>() > 0.0);
    BOOST_TEST(pair.at("loss_gap").get<double>() < 0.2);  // four small steps
    BOOST_TEST(pair.at("loss_gap_standard_error").is_number());
    BOOST_TEST(summary.at("dynamics").size() == 2U);
    BOOST_TEST(experiment.study->values_per_sample(1) ==
               static_cast<std::size_t>(results[1].members[0].observables.size()) + (head == linear ? 1U : 0U));
  }
}

BOOST_AUTO_TEST_SUITE_END()
