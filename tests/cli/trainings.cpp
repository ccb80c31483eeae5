#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

using program::run;
using program::Running;
using program::Scratch;
namespace fs = std::filesystem;

namespace {

/// A tiny stack, trained for a moment.
std::string small_training() {
  return R"(title = "Tiny"
system = "autoregressive"
[sequence]
state_dimension = 2
length = 6
[model]
layers = ["linear"]
heads = 1
key_dimension = 2
[training]
steps = 40
batch = 20
learning_rate = 0.01
warm_up = 5
initial_deviation = 0.1
seeds = [1, 2]
record_every = 10
evaluation_sequences = 50
[baselines]
sequences = 200
ridge = [1.0]
preconditioned_steps = [1]
[report]
figures = []
)";
}

bool same_arrays(const Scratch& scratch, const fs::path& a, const fs::path& b) {
  const auto answer = program::iclflow(scratch, {"compare", a.string(), b.string()});
  BOOST_REQUIRE_MESSAGE(answer.code == 0, answer.err);
  return answer.out.find("all arrays are bit-identical") != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trainings)

BOOST_AUTO_TEST_CASE(a_training_leaves_the_promised_summary_whatever_the_threads) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", small_training());
  const fs::path one = run(scratch, file, "one", {"--threads", "1"});
  const auto summary = nlohmann::json::parse(program::read(one / "summary.json"));
  for (const char* key : {"training", "final_loss", "final_loss_standard_error", "baselines", "final", "problem"}) {
    BOOST_TEST(summary.contains(key), key);
  }
  BOOST_TEST(summary.at("training").size() == 10U);  // two seeds, five records
  BOOST_TEST(summary.at("training").at(9).at("step") == 40.0);
  BOOST_TEST(summary.at("final_loss") < summary.at("training").at(0).at("loss"));
  BOOST_TEST(summary.at("final").at("positions").at("loss").size() == 6U);
  BOOST_TEST(summary.dump().find("nan") == std::string::npos);
  const fs::path two = run(scratch, (one / "experiment.toml").string(), "two", {"--threads", "2"});
  BOOST_TEST(same_arrays(scratch, one, two));
  BOOST_TEST(program::summary_without_clock(one) == program::summary_without_clock(two));
  BOOST_TEST(program::read(one / "experiment.toml") == program::read(two / "experiment.toml"));
}

BOOST_AUTO_TEST_CASE(an_interrupted_or_killed_training_goes_on_to_the_same_bits) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::replaced(small_training(), "steps = 40", "steps = 2000"));
  const fs::path whole = run(scratch, file, "whole");
  for (const int signal : {SIGINT, SIGKILL}) {
    const fs::path stopped = scratch / ("stopped" + std::to_string(signal));
    Running running(scratch, {"run", file, "--quiet", "--out", stopped.string(), "--checkpoint-seconds", "0"});
    BOOST_REQUIRE(running.wait_for(stopped / "checkpoints" / "training.1", 60.0));
    running.signal(signal);
    BOOST_TEST(running.wait().code == (signal == SIGINT ? 130 : 128 + SIGKILL));
    run(scratch, file, stopped.filename().string(), {"--resume"});
    BOOST_TEST(same_arrays(scratch, whole, stopped));
    BOOST_TEST(program::summary_without_clock(whole) == program::summary_without_clock(stopped));
  }
}

BOOST_AUTO_TEST_CASE(a_sweep_gives_every_member_seeds_of_its_own) {
  const Scratch scratch;
  const std::string rates = program::replaced(small_training(), "learning_rate = 0.01\n", "");
  const std::string file = scratch.write("s.toml", rates + "[sweep]\n\"training.learning_rate\" = [0.001, 0.01]\n");
  const fs::path folder = program::into(scratch, "sweep", file, "sweep");
  std::vector<std::vector<std::uint64_t>> seeds;
  for (const char* member : {"learning_rate=0.001", "learning_rate=0.01"}) {
    const auto summary = nlohmann::json::parse(program::read(folder / "members" / member / "summary.json"));
    seeds.push_back(summary.at("seeds").get<std::vector<std::uint64_t>>());
  }
  BOOST_TEST(seeds[0].size() == 2U);
  BOOST_TEST((seeds[0] != seeds[1]));
  BOOST_TEST(program::read(folder / "table.csv").find("final_loss") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(seeds_that_end_at_different_records_are_compared_where_both_are) {
  const Scratch scratch;
  const std::string text = program::replaced(small_training(), "[report]", "[compression]\n[report]") +
                           "[[event]]\nquantity = \"loss\"\nlevel = 0.3\nterminal = true\n";
  const auto summary =
      nlohmann::json::parse(program::read(run(scratch, scratch.write("e.toml", text), "run") / "summary.json"));
  const std::size_t records = summary.at("training").size();
  BOOST_TEST(summary.at("compressed").at("along").at("step").size() <= records / 2);
}

BOOST_AUTO_TEST_CASE(predict_samples_the_baselines_and_trains_nothing) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", small_training());
  const auto text = program::iclflow(scratch, {"predict", file});
  BOOST_TEST(text.code == 0, text.err);
  BOOST_TEST(text.out.find("one gradient step") != std::string::npos);
  const auto json = nlohmann::json::parse(program::iclflow(scratch, {"predict", file, "--json"}).out);
  for (const char* key : {"zero", "gradient_step"}) {
    BOOST_TEST(json.at("baselines").at(key).at("standard_error") > 0.0, key);
  }
  BOOST_TEST(json.at("baselines").at("ridge").at(0).at("lambda") == 1.0);
}

BOOST_AUTO_TEST_CASE(mistakes_are_refused_with_line_and_key) {
  struct Mistake {
    std::string from, to, key, says;
  };
  const std::vector<Mistake> mistakes{
      {"state_dimension = 2", "state_dimension = 0", "sequence.state_dimension", "(0)"},
      {"length = 6", "kind = \"spiral\"", "sequence.kind", "\"orthogonal\""},
      {"length = 6", "hidden_dimension = 3", "sequence.hidden_dimension", "not known"},
      {"length = 6", "noise_deviation = -1.0", "sequence.noise_deviation", "at least 0"},
      {"layers = [\"linear\"]", "layers = [\"linear\", \"cubic\"]", "model.layers", "softmax, mesa"},
      {"layers = [\"linear\"]", "layers = []", "model.layers", "1 to 64"},
      {"layers = [\"linear\"]", "width = 8", "model.layers", "is missing"},
      {"heads = 1", "position_dimension = 4", "model.position_dimension", "not known"},
      {"heads = 1", "forgetting = true", "model.forgetting", "not known"},
      {"steps = 40", "steps = 0", "training.steps", "(0)"},
      {"warm_up = 5", "decay_end = 10", "training.decay_end", "more than warm_up"},
      {"warm_up = 5", "precision = \"half\"", "training.precision", "\"double\""},
      {"seeds = [1, 2]", "seeds = [1, 1]", "training.seeds", "different"},
      {"title = \"Tiny\"", "time = { final = 1.0 }", "time", "does not belong"},
      {"length = 6", "noise_deviation = 1e160", "sequence.noise_deviation", "to 1000"},
      {"[baselines]", "keep_parameters = false\n[compression]\n[baselines]", "compression", "recorded weights"},
      {"steps = 40", "steps = 4000000000\nkeep_parameters = false", "training", "too much to record"},
      {"length = 6", "length = 4096\nkind = \"contracting\"", "sequence", "in a pass"},
      {"ridge = [1.0]", "ridge = [0.0]", "baselines.ridge", "above 0"},
  };
  const Scratch scratch;
  for (const Mistake& mistake : mistakes) {
    BOOST_TEST_CONTEXT(mistake.to) {
      const std::string file = scratch.write("e.toml", program::replaced(small_training(), mistake.from, mistake.to));
      const auto answer = program::iclflow(scratch, {"run", file, "--out", (scratch / "run").string()});
      BOOST_TEST(answer.code == 2);
      BOOST_TEST(answer.err.find("key '" + mistake.key) != std::string::npos, answer.err);
      BOOST_TEST(answer.err.find(mistake.says) != std::string::npos, answer.err);
      BOOST_TEST(!fs::exists(scratch / "run"));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
