#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "iclflow/experiment/document_edit.hpp"
#include "iclflow/experiment/sweep.hpp"
#include "iclflow/regression/regression.hpp"

using namespace iclflow;

namespace {

const Systems& systems() {
  static const Systems all = [] {
    Systems made;
    made.push_back(make_regression());
    return made;
  }();
  return all;
}

const std::string base = R"(title = "base"
[problem]
heads = 2
task_dimensions = [2, 3]
context_length = 40
[initial]
mu = [[0.3, 0.1], [0.1, 0.3]]
omega = 0.1
[time]
final = 1.0
samples = 2
[[dynamics]]
kind = "spectral-flow"
[[dynamics]]
name = "sgd"
kind = "attention"
learning_rate = 0.1
seeds = [1, 2]
[[event]]
quantity = "loss"
level = 0.5
)";

Sweep sweep(const std::string& table, bool theory = false) {
  return Sweep(parse_document(base + "[sweep]\n" + table, "f.toml"), systems(), theory);
}

std::vector<std::string> names(const Sweep& made) {
  std::vector<std::string> all;
  for (std::size_t k = 0; k < made.size(); ++k) all.push_back(made.name(k));
  return all;
}

/// The message with which the file is refused; empty when it is taken.
std::string refusal(const std::string& table) {
  try {
    static_cast<void>(sweep(table));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<std::uint64_t> seeds(const Sweep& made, std::size_t member) {
  const Experiment experiment = made.experiment(member);
  for (const DynamicsPart& part : experiment.study->dynamics()) {
    if (part.name == "sgd") return part.seeds;
  }
  return {};
}

std::vector<double> range(const std::string& text) {
  const Sweep made = sweep("\"event[0].level\" = " + text);
  std::vector<double> values;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const Value& value = made.value(k, 0);
    values.push_back(value.kind == Value::Kind::integer ? static_cast<double>(value.integer) : value.real);
  }
  return values;
}

bool close(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::abs(a[k] - b[k]) > 1e-14 * std::abs(b[k])) return false;  // rounding of one power
  }
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_sweep)

BOOST_AUTO_TEST_CASE(keys_are_crossed_the_last_fastest) {
  const Sweep made = sweep("\"problem.context_length\" = [100, 200]\n\"dynamics.sgd.batch\" = [10, 20, 30]\n");
  const std::vector<std::string> expected{"context_length=100,batch=10", "context_length=100,batch=20",
                                          "context_length=100,batch=30", "context_length=200,batch=10",
                                          "context_length=200,batch=20", "context_length=200,batch=30"};
  BOOST_TEST(names(made) == expected, boost::test_tools::per_element());
  const std::string resolved = made.experiment(4).resolved();
  BOOST_TEST(resolved.find("context_length = 200\n") != std::string::npos);
  BOOST_TEST(resolved.find("batch = 20\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(keys_are_zipped) {
  const Sweep made = sweep(
      "mode = 'zip'\nnames = ['small', 'large']\n\"problem.task_dimensions\" = [[2, 2], [9, 4]]\n"
      "\"problem.noise_variance\" = [0.5, 2]\n\"initial.mu[0][1]\" = [0.7, 0.8]\n");
  BOOST_TEST(made.size() == 2U);
  const std::string resolved = made.experiment(1).resolved();
  BOOST_TEST(made.name(1) == "large");
  BOOST_TEST(resolved.find("task_dimensions = [9, 4]\n") != std::string::npos);
  BOOST_TEST(resolved.find("noise_variance = 2.0\n") != std::string::npos);
  BOOST_TEST(resolved.find("mu = [[0.3, 0.8], [0.1, 0.3]]\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(names_tell_equal_tails_apart_and_fit_a_folder) {
  const Sweep made = sweep(
      "\"initial.omega\" = [0.5]\n\"initial.mu[0][1]\" = [2]\n\"dynamics.sgd.precision\" = ['single']\n"
      "\"problem.task_dimensions\" = [[2, 2]]\n\"dynamics.sgd.name\" = ['a']\n"
      "\"dynamics.spectral-flow.name\" = ['b']\n\"initial.imbalance\" = [{ mu = 1 }]\n");
  BOOST_TEST(made.name(0) ==
             "omega=0.5,mu0_1=2,precision=single,task_dimensions=2x2,sgd.name=a,spectral-flow.name=b,imbalance=mu1");
}

BOOST_AUTO_TEST_CASE(ranges) {
  BOOST_TEST(close(range("{ from = 0.01, to = 1, points = 3 }"), {0.01, 0.1, 1.0}));
  BOOST_TEST(close(range("{ from = 0.0, to = 1, points = 5, spacing = 'linear' }"), {0.0, 0.25, 0.5, 0.75, 1.0}));
  BOOST_TEST(close(range("{ from = 100, to = 1600, factor = 2 }"), {100, 200, 400, 800, 1600}));
  BOOST_TEST(close(range("{ from = 1.0, to = 0.001, factor = 0.1 }"), {1.0, 0.1, 0.01, 0.001}));
  BOOST_TEST(close(range("{ from = 1, to = 8, step = 3 }"), {1, 4, 7}));
  BOOST_TEST(close(range("{ from = 1, to = 0, step = -0.5 }"), {1.0, 0.5, 0.0}));
  BOOST_TEST(close(range("{ from = 10, to = 1000, points = 4 }"), {10, 46, 215, 1000}));  // integers stay integers
}

BOOST_AUTO_TEST_CASE(seeds_depend_on_the_name_alone) {
  const Sweep both = sweep("\"problem.context_length\" = [100, 200]\n");
  const Sweep turned = sweep("\"problem.context_length\" = [300, 200, 100]\n");
  BOOST_TEST(seeds(both, 0) == seeds(turned, 2), boost::test_tools::per_element());
  BOOST_TEST(seeds(both, 0).at(0) == member_seed("context_length=100", 1));
  std::set<std::uint64_t> all;
  for (int name = 0; name < 200; ++name) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) all.insert(member_seed(std::to_string(name), seed));
  }
  BOOST_TEST(all.size() == 10000U);
  const Sweep common = sweep("common_seeds = true\n\"problem.context_length\" = [100, 200]\n");
  BOOST_TEST(seeds(common, 1) == (std::vector<std::uint64_t>{1, 2}), boost::test_tools::per_element());
  const Sweep swept = sweep("\"dynamics.sgd.seeds\" = [[7], [8, 9]]\n");
  BOOST_TEST(seeds(swept, 1) == (std::vector<std::uint64_t>{8, 9}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(theory_leaves_the_simulations_out) {
  const Sweep made = sweep("\"dynamics.sgd.batch\" = [10, 20]\n[expect]\nloss_gap = 0.1\n", true);
  const Experiment experiment = made.experiment(0);
  BOOST_TEST(experiment.study->dynamics().size() == 1U);
  BOOST_TEST(experiment.theory_only);
  BOOST_TEST(experiment.expectations.empty());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_meant_is_refused_with_its_line) {
  const int line = 23;  // of the first key below [sweep]
  const auto refused = [&](const std::string& table, const std::string& what) {
    const std::string message = refusal(table);
    const std::string place = "f.toml:" + std::to_string(line) + ": key '";
    BOOST_TEST(message.starts_with(place), message);
    BOOST_TEST(message.find(what) != std::string::npos, message);
  };
  refused("\"problem.contxt_length\" = [100]", "is not known here");
  refused("\"problm.context_length\" = [100]", "is not known here");
  refused("\"dynamics.other.batch\" = [1]", "there is nothing called 'other'");
  refused("\"initial.mu[2][0]\" = [1]", "beyond the list's end");
  refused("\"initial.omega[0]\" = [1]", "no list there");
  refused("\"initial.mu[x]\" = [1]", "is no path");
  refused("\"problem.context_length\" = []", "no members");
  refused("\"problem.context_length\" = 3", "wrong type");
  refused("\"problem.context_length\" = ['a']", "wrong type");
  refused("\"problem.context_length\" = [100, 2.5]", "wrong type");
  refused("\"problem.context_length\" = [100, -1]", "impossible value (-1)");
  refused("\"problem.noise_variance\" = [0.1, nan]", "impossible value");
  refused("\"problem.context_length\" = [100, 100]", "is used twice");
  refused("contexts = [1]", "is not known here");
  refused("problem.context_length = [1]", "in quotes");
  for (const char* endless : {"factor = 1", "factor = 0.5", "step = 0", "step = -1"}) {
    refused(std::string("\"problem.context_length\" = { from = 1, to = 9, ") + endless + " }", "never ends");
  }
  refused("\"problem.context_length\" = { from = 1, to = 9, factor = 0 }", "impossible value");
  refused("\"problem.context_length\" = { from = 1, to = 9, factor = -2 }", "impossible value");
  refused("\"problem.context_length\" = { from = 0, to = 9, factor = 2 }", "ends above 0");
  refused("\"problem.context_length\" = { from = 1, to = inf, factor = 2 }", "impossible value");
  refused("\"problem.context_length\" = { from = 1, to = 9 }", "is missing");
  refused("\"problem.context_length\" = { from = 1, to = 9, step = 1, points = 3 }", "beside");
  refused("\"problem.context_length\" = { from = 1, to = 9, step = 1, end = 3 }", "is not known here");
  refused("\"problem.noise_variance\" = { from = 1, to = 9, step = 1e-9 }", "at most 100000 values");
  refused("names = ['a', 'b']\n\"problem.context_length\" = [100]", "2 entries for 1 members");
  refused("names = ['a/b']\n\"problem.context_length\" = [100]", "is no folder's name");
  refused("names = ['..']\n\"problem.context_length\" = [100]", "is no folder's name");
  refused("names = ['a', 'a']\n\"problem.context_length\" = [100, 200]", "is used twice");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_between_keys_is_refused) {
  const std::string zip =
      refusal("mode = 'zip'\n\"problem.context_length\" = [1, 2]\n\"problem.noise_variance\" = [1]");
  BOOST_TEST(zip.find("f.toml:25: key 'sweep.problem.noise_variance': has 1 values") == 0U, zip);
  const std::string huge = refusal(
      "\"problem.noise_variance\" = { from = 1.0, to = 2, points = 1000 }\n"
      "\"event[0].level\" = { from = 1.0, to = 2, points = 1000 }");
  BOOST_TEST(huge.find("too many members") != std::string::npos, huge);
  BOOST_TEST(refusal("mode = 'zip'").find("no members") != std::string::npos);
  BOOST_CHECK_THROW(
      static_cast<void>(make_experiment(parse_document(base + "[sweep]\n'problem.heads' = [2]", "f"), systems())),
      InputError);
}

BOOST_AUTO_TEST_SUITE_END()
