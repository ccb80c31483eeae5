#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "program.hpp"

using program::run;
using program::Running;
using program::Scratch;
namespace fs = std::filesystem;

namespace {

/// The small experiment with an evaluation; `table` follows the line [evaluation].
std::string with_evaluation(const std::string& table) {
  return program::replaced(program::small_experiment(), "[report]\nfigures = []",
                           "[evaluation]\n" + table + "\n[report]\nfigures = []");
}

const std::string small_table = R"(context_lengths = [1, 5, 20, 80]
contexts = 300
estimators = ["ridge", "least-squares", { name = "gd-half", kind = "gradient-step", eta = 0.5 }]
[[evaluation.shift]]
name = "orthogonal"
queries = "orthogonal"
[[evaluation.shift]]
name = "all"
covariates = "skewed"
input_scale = 1.5
label_noise = 0.4)";

nlohmann::json evaluation_of(const fs::path& folder) {
  return nlohmann::json::parse(program::read(folder / "summary.json")).at("evaluation");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(evaluation)

BOOST_AUTO_TEST_CASE(the_table_has_a_row_for_every_law_length_and_estimator) {
  const Scratch scratch;
  const fs::path folder = run(scratch, scratch.write("e.toml", with_evaluation(small_table)), "run");
  const auto rows = evaluation_of(folder);
  BOOST_TEST(rows.size() == 3U * 4U * 5U);
  std::set<std::string> names;
  for (const auto& row : rows) {
    names.insert(row.at("estimator").get<std::string>());
    const bool orthogonal = row.value("shift", "") == "orthogonal";
    const int length = row.at("context_length").get<int>();
    // d = 5: no orthogonal query from L = 5 on; d_i = 2, 3: least squares has no mean at L = 1.
    const bool infinite = row.at("estimator") == "least-squares" && length == 1 && !orthogonal;
    const bool exists = !(orthogonal && length >= 5) && !infinite;
    BOOST_TEST(row.at("loss").is_number() == exists, row.dump());
    if (row.at("estimator") == "simulation" && exists) {
      const double contexts = row.at("contexts_error").get<double>();
      const double seeds = row.at("seeds_error").get<double>();
      BOOST_TEST(std::abs(std::hypot(contexts, seeds) / row.at("standard_error").get<double>() - 1.0) < 1e-14);
    }
    BOOST_TEST((row.at("prediction").is_number() && row.contains("shift")) == false);
  }
  BOOST_TEST(names == (std::set<std::string>{"ridge", "least-squares", "gd-half", "theory", "simulation"}),
             boost::test_tools::per_element());
  BOOST_TEST(program::read(folder / "report.html").find("Fresh contexts of several lengths") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(final_weights_of_the_simulation_are_those_evaluated) {
  const Scratch scratch;
  const std::string table = "context_lengths = [20]\ncontexts = 20000\nestimators = []";
  std::string fixed = with_evaluation(table);
  fixed.replace(fixed.find("[[dynamics]]"), fixed.find("[[event]]") - fixed.find("[[dynamics]]"),
                "[[dynamics]]\nname = \"start\"\nkind = \"fixed\"\n");
  const fs::path at_start = run(scratch, scratch.write("fixed.toml", fixed), "start");
  // At the training length the evaluation and the recorded final loss are two samples of one mean: |z| < 4.
  std::string text =
      program::replaced(with_evaluation(table), "evaluation_contexts = 203", "evaluation_contexts = 20000");
  text = program::replaced(text, "final = 0.5", "final = 2.0");
  const fs::path folder = run(scratch, scratch.write("e.toml", text), "run");
  const auto summary = nlohmann::json::parse(program::read(folder / "summary.json"));
  const auto& row = summary.at("evaluation").at(1);
  BOOST_TEST(row.at("estimator") == "simulation");
  const auto& simulation = summary.at("dynamics").at(1);
  const double gap = row.at("loss").get<double>() - simulation.at("final_loss").get<double>();
  // Score space has the smaller context error, so sqrt(2) of ours is an upper bound.
  BOOST_TEST(std::abs(gap) < 4.0 * std::sqrt(2.0) * row.at("contexts_error").get<double>());
  // The start is far from both: not it was evaluated.
  const auto start = nlohmann::json::parse(program::read(at_start / "summary.json")).at("evaluation").at(0);
  BOOST_TEST(start.at("loss").get<double>() > 1.05 * row.at("loss").get<double>());
}

BOOST_AUTO_TEST_CASE(checks_find_laws_by_name) {
  const Scratch scratch;
  const std::string check =
      "[[check]]\nstatement = \"noisier labels cost more\"\nquantity = "
      "\"difference(evaluation.all.20.ridge.loss, evaluation.20.ridge.loss)\"\n";
  const std::string text = with_evaluation(small_table) + check;
  const fs::path folder = run(scratch, scratch.write("e.toml", text + "at_least = 0.0\n"), "run");
  const auto summary = nlohmann::json::parse(program::read(folder / "summary.json"));
  const auto loss = [&](const std::string& law) {
    for (const auto& row : summary.at("evaluation")) {
      if (row.value("shift", "") == law && row.at("context_length") == 20 && row.at("estimator") == "ridge") {
        return row.at("loss").get<double>();
      }
    }
    return -1.0;
  };
  BOOST_TEST(summary.at("checks").at(0).at("measured").get<double>() == loss("all") - loss(""));
  run(scratch, scratch.write("f.toml", text + "at_most = 0.0\n"), "missed", {}, 1);
}

BOOST_AUTO_TEST_CASE(threads_and_resolved_files_never_change_a_bit) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", with_evaluation(small_table));
  const fs::path one = run(scratch, file, "one", {"--threads", "1"});
  const fs::path three = run(scratch, file, "three", {"--threads", "3"});
  BOOST_TEST(program::summary_without_clock(one) == program::summary_without_clock(three));
  const fs::path again = run(scratch, (one / "experiment.toml").string(), "again");
  BOOST_TEST(program::read(one / "experiment.toml") == program::read(again / "experiment.toml"));
  BOOST_TEST(program::summary_without_clock(one) == program::summary_without_clock(again));
}

BOOST_AUTO_TEST_CASE(an_interrupted_evaluation_goes_on_to_the_same_bits) {
  const Scratch scratch;
  const std::string table = "context_lengths = { from = 1, to = 60 }\ncontexts = 3000\nestimators = [\"ridge\"]";
  const std::string file = scratch.write("e.toml", with_evaluation(table));
  const fs::path whole = run(scratch, file, "whole");
  const fs::path stopped = scratch / "stopped";
  Running running(scratch, {"run", file, "--quiet", "--out", stopped.string(), "--checkpoint-seconds", "0"});
  BOOST_REQUIRE(running.wait_for(stopped / "checkpoints" / "evaluated.json", 60.0));
  running.signal(SIGINT);
  const auto answer = running.wait();
  BOOST_TEST(answer.code == 130, answer.err);
  const auto summary = nlohmann::json::parse(program::read(stopped / "summary.json"));
  BOOST_TEST(summary.at("status") == "interrupted");
  BOOST_TEST(!summary.at("evaluation").empty());
  BOOST_TEST(summary.at("evaluation").size() < 180U);
  run(scratch, file, "stopped", {"--resume"});
  BOOST_TEST(program::summary_without_clock(whole) == program::summary_without_clock(stopped));
  BOOST_TEST(!fs::exists(stopped / "checkpoints"));
}

BOOST_AUTO_TEST_CASE(mistakes_are_refused_with_line_and_key) {
  struct Mistake {
    std::string table;
    std::string key;
    std::string says;
  };
  const std::string lengths = "context_lengths = [5]\n";
  const std::string shift = lengths + "[[evaluation.shift]]\nname = \"s\"\n";
  const std::vector<Mistake> mistakes{
      {"seed = 1", "evaluation.context_lengths", "is missing"},
      {"context_lengths = []", "evaluation.context_lengths", "empty"},
      {"context_lengths = [0]", "evaluation.context_lengths[0]", "(0)"},
      {"context_lengths = [5, 5]", "evaluation.context_lengths", "holds 5 twice"},
      {"context_lengths = \"all\"", "evaluation.context_lengths", "wrong type"},
      {"context_lengths = [16777216]", "evaluation.context_lengths", "lengths of at most"},
      {"context_lengths = { from = 1 }", "evaluation.context_lengths.to", "is missing"},
      {"context_lengths = { from = 9, to = 3 }", "evaluation.context_lengths.to", "(3)"},
      {"context_lengths = { from = 1, to = 100000 }", "evaluation.context_lengths.to", "at most 4096 lengths"},
      {"context_lengths = { from = 1, to = 9, points = 1 }", "evaluation.context_lengths.points", "at least 2"},
      {"context_lengths = { from = 1, to = 9, step = 1 }", "evaluation.context_lengths.step", "not known"},
      {lengths + "contexts = 1", "evaluation.contexts", "(1)"},
      {lengths + "contexts = 1e4", "evaluation.contexts", "an integer"},
      {lengths + "axes = \"square\"", "evaluation.axes", "\"linear\""},
      {lengths + "estimators = [\"lasso\"]", "evaluation.estimators", "\"ridge\""},
      {lengths + "estimators = [\"ridge\", \"ridge\"]", "evaluation.estimators", "is taken"},
      {lengths + "estimators = [{ name = \"theory\", kind = \"ridge\" }]", "evaluation.estimators", "is taken"},
      {lengths + "estimators = [3]", "evaluation.estimators[0]", "a string or a table"},
      {lengths + "estimators = [{ name = \"a b\", kind = \"ridge\" }]", "evaluation.estimators", "A-Z"},
      {lengths + "estimators = [{ name = \"a\" }]", "evaluation.estimators[0].kind", "is missing"},
      {lengths + "estimators = [{ kind = \"ridge\", eta = 0.5 }]", "evaluation.estimators[0].eta", "does not belong"},
      {lengths + "estimators = [{ kind = \"ridge\", lambda = 0 }]", "evaluation.estimators[0].lambda", "above 0"},
      {lengths + "estimators = [{ kind = \"averaging\", lambda = 1 }]", "evaluation.estimators[0].lambda", "\"ridge\""},
      {lengths + "estimators = [{ kind = \"gradient-step\", eta = inf }]", "evaluation.estimators[0].eta", "finite"},
      {lengths + "length = 3", "evaluation.length", "not known"},
      {lengths + "[[evaluation.shift]]\ninput_scale = 2.0", "evaluation.shift[0].name", "is missing"},
      {shift, "evaluation.shift[0].name", "is the training law"},
      {shift + "label_noise = 0.1", "evaluation.shift[0].name", "is the training law"},
      {shift + "label_noise = -1", "evaluation.shift[0].label_noise", "at least 0"},
      {shift + "input_scale = 0", "evaluation.shift[0].input_scale", "above 0"},
      {shift + "input_scale = 1e200", "evaluation.shift[0].input_scale", "at most 1e30"},
      {shift + "covariates = \"heavy\"", "evaluation.shift[0].covariates", "\"skewed\""},
      {shift + "queries = 4", "evaluation.shift[0].queries", "wrong type"},
      {shift + "input_scale = 2.0\n[[evaluation.shift]]\nname = \"s\"\ninput_scale = 3.0", "evaluation.shift[1].name",
       "is taken"},
  };
  const Scratch scratch;
  for (std::size_t k = 0; k < mistakes.size(); ++k) {
    const std::string file = scratch.write(fmt::format("e{}.toml", k), with_evaluation(mistakes[k].table));
    const auto answer = program::iclflow(scratch, {"run", file});
    BOOST_TEST(answer.code == 2, mistakes[k].table);
    for (const std::string& word :
         {file + ":", "key '" + mistakes[k].key + "'", mistakes[k].says, std::string("; allowed: ")}) {
      BOOST_TEST(answer.err.find(word) != std::string::npos, word << " in " << answer.err);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
