#include <sys/wait.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "program.hpp"

using program::run;
using program::Running;
using program::Scratch;
namespace fs = std::filesystem;

namespace {

bool same_arrays(const Scratch& scratch, const fs::path& a, const fs::path& b) {
  const auto answer = program::iclflow(scratch, {"compare", a.string(), b.string()});
  BOOST_REQUIRE_MESSAGE(answer.code == 0, answer.err);
  return answer.out.find("all arrays are bit-identical") != std::string::npos;
}

nlohmann::json summary_of(const fs::path& folder) {
  return nlohmann::json::parse(program::read(folder / "summary.json"));
}

/// Final loss of the simulation, the seeds' mean.
double simulated_loss(const fs::path& folder) {
  const auto summary = summary_of(folder);
  for (const auto& dynamics : summary.at("dynamics")) {
    if (dynamics.at("kind") == "attention") return dynamics.at("final_loss").get<double>();
  }
  throw std::runtime_error("no simulation in " + folder.string());
}

/// A few hundred steps: long enough to be stopped on the way, with a checkpoint at every one of 300 samples.
std::string long_experiment() {
  std::string text =
      program::replaced(program::small_experiment(), "final = 0.5\nsamples = 5", "final = 6.0\nsamples = 300");
  text = program::replaced(text, "learning_rate = 0.05", "learning_rate = 0.01");
  return program::replaced(text, "seeds = [1, 2]", "seeds = [1, 2, 3]");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(runs)

BOOST_AUTO_TEST_CASE(a_run_leaves_its_folder_and_refuses_to_overwrite_it) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const fs::path folder = run(scratch, file, "run");
  for (const char* name : {"experiment.toml", "summary.json", "trajectory.nc", "report.html", "log.txt"}) {
    BOOST_TEST(fs::exists(folder / name), name);
  }
  BOOST_TEST(!fs::exists(folder / "checkpoints"));
  for (const auto& entry : fs::directory_iterator(folder)) BOOST_TEST(entry.path().extension() != ".part");
  const auto again = program::iclflow(scratch, {"run", file, "--out", folder.string()});
  BOOST_TEST(again.code == 2);
  BOOST_TEST(again.err.find("exists already") != std::string::npos);
  run(scratch, file, "run", {"--resume"});  // whole already: nothing to do
  const std::string other = scratch.write("o.toml", program::replaced(program::small_experiment(), "0.32", "0.33"));
  run(scratch, other, "run", {"--resume"}, 2);
}

BOOST_AUTO_TEST_CASE(the_summary_has_the_promised_keys) {
  const Scratch scratch;
  const auto summary = summary_of(run(scratch, scratch.write("e.toml", program::small_experiment()), "run"));
  for (const char* key : {"version", "seeds", "problem", "prediction", "dynamics", "comparison"}) {
    BOOST_TEST(summary.contains(key), key);
  }
  for (const char* key :
       {"dedicated", "single_head", "best", "single_to_dedicated", "pair", "ridge", "gradient_step", "warm_up"}) {
    BOOST_TEST(summary.at("prediction").contains(key), key);
  }
  const auto& simulation = summary.at("dynamics").at(1);
  for (const char* key :
       {"name", "kind", "estimator", "final_time", "final_loss", "final_loss_standard_error", "phases", "allocation",
        "final_mu", "final_omega", "leakage", "events", "evaluations", "wall_seconds"}) {
    BOOST_TEST(simulation.contains(key), key);
  }
  BOOST_TEST(summary.at("dynamics").at(0).at("closure") == "large-context");
  BOOST_TEST(simulation.at("evaluations") == 20);  // 10 steps, 2 seeds
  BOOST_TEST(simulation.at("final_mu").at(1).size() == 2U);
  BOOST_TEST(simulation.at("events").size() == 2U);  // mu[0][0] moves from 0.30 to 0.35: every seed passes 0.32
  for (const char* key :
       {"theory", "simulation", "loss_gap", "loss_gap_max", "emergence_time_gap", "mu_gap", "omega_gap"}) {
    BOOST_TEST(summary.at("comparison").at(0).contains(key), key);
  }
  BOOST_TEST(summary.dump().find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_resolved_experiment_reruns_to_the_same_bits) {
  const Scratch scratch;
  const std::string odd = program::replaced(program::small_experiment(), "omega = 0.1",
                                            "omega = [[0.1, 0.30000000000000004], [0.1, 0.7]]\n"
                                            "imbalance = { mu = 0.01, omega = -0.02 }\ninert = 0.1");
  const fs::path first = run(scratch, scratch.write("e.toml", odd), "first");
  const fs::path second = run(scratch, (first / "experiment.toml").string(), "second");
  BOOST_TEST(program::read(first / "experiment.toml") == program::read(second / "experiment.toml"));
  BOOST_TEST(same_arrays(scratch, first, second));
  BOOST_TEST(program::summary_without_clock(first) == program::summary_without_clock(second));
}

BOOST_AUTO_TEST_CASE(weights_of_a_file_travel_with_the_run) {
  const Scratch scratch;
  scratch.write("in/w.json", R"({"parametrisation": "merged",
    "W": [[[0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1]]], "U": [[[0.5, 0], [0, 0.25]]]})");
  const std::string text = R"(title = "weights"
[problem]
heads = 1
task_dimensions = [1, 2]
context_length = 10
parametrisation = "merged"
[initial]
weights = "w.json"
[[dynamics]]
name = "given"
kind = "fixed"
evaluation_contexts = 100
[report]
figures = []
)";
  const fs::path first = run(scratch, scratch.write("in/e.toml", text), "first");
  const fs::path second = run(scratch, (first / "experiment.toml").string(), "second");
  BOOST_TEST(same_arrays(scratch, first, second));
  const auto given = summary_of(second).at("dynamics").at(0);
  BOOST_TEST(given.at("final_mu").at(0).at(1).get<double>() == 0.25);
  BOOST_TEST(given.at("final_omega").at(0).at(0).get<double>() == 0.3);
  const std::string wrong = program::replaced(text, "heads = 1", "heads = 2");
  const auto answer = program::iclflow(scratch, {"run", scratch.write("in/wrong.toml", wrong)});
  BOOST_TEST(answer.code == 2);
  BOOST_TEST(answer.err.find("number of heads (1)") != std::string::npos, answer.err);
}

BOOST_AUTO_TEST_CASE(threads_never_change_a_bit_and_seeds_do) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const fs::path one = run(scratch, file, "one", {"--threads", "1"});
  for (const char* threads : {"2", "7"}) {
    const fs::path more = run(scratch, file, threads, {"--threads", threads});
    BOOST_TEST(same_arrays(scratch, one, more), threads);
    BOOST_TEST(program::summary_without_clock(one) == program::summary_without_clock(more));
  }
  const std::string other = program::replaced(program::small_experiment(), "seeds = [1, 2]", "seeds = [1, 3]");
  // The loss, not all arrays: the seeds themselves stand among those.
  const fs::path differs = run(scratch, scratch.write("o.toml", other), "other");
  BOOST_TEST(simulated_loss(one) != simulated_loss(differs));
}

BOOST_AUTO_TEST_CASE(an_interrupted_run_keeps_what_it_has_and_goes_on_to_the_same_bits) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", long_experiment());
  const fs::path whole = run(scratch, file, "whole");
  for (const int signal : {SIGINT, SIGTERM}) {
    const fs::path stopped = scratch / ("stopped" + std::to_string(signal));
    Running running(scratch, {"run", file, "--quiet", "--out", stopped.string(), "--checkpoint-seconds", "0"});
    BOOST_REQUIRE(running.wait_for(stopped / "checkpoints" / "simulation.1", 60.0));
    running.signal(signal);
    const auto answer = running.wait();
    BOOST_TEST(answer.code == 130, answer.err);
    const auto summary = summary_of(stopped);
    BOOST_TEST(summary.at("status") == "interrupted");
    BOOST_TEST(summary.at("dynamics").at(0).at("final_time") == 6.0);
    BOOST_TEST(summary.at("dynamics").at(1).at("status") == "interrupted");
    BOOST_TEST(summary.at("dynamics").at(1).at("evaluations").get<int>() >= 600);  // the first seed is whole
    BOOST_TEST(fs::exists(stopped / "trajectory.nc"));
    run(scratch, file, stopped.filename().string(), {"--resume"});
    BOOST_TEST(same_arrays(scratch, whole, stopped));
    BOOST_TEST(program::summary_without_clock(whole) == program::summary_without_clock(stopped));
    BOOST_TEST(!fs::exists(stopped / "checkpoints"));
  }
}

BOOST_AUTO_TEST_CASE(a_killed_run_goes_on_to_the_same_bits) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", long_experiment());
  const fs::path whole = run(scratch, file, "whole");
  const fs::path killed = scratch / "killed";
  Running running(scratch, {"run", file, "--quiet", "--out", killed.string(), "--checkpoint-seconds", "0"});
  BOOST_REQUIRE(running.wait_for(killed / "checkpoints" / "simulation.1", 60.0));
  running.signal(SIGKILL);
  BOOST_TEST(running.wait().code == 128 + SIGKILL);
  BOOST_TEST(!fs::exists(killed / "summary.json"));
  run(scratch, file, "killed", {"--resume"});
  BOOST_TEST(program::read(killed / "log.txt").find("goes on at t = ") != std::string::npos);
  BOOST_TEST(same_arrays(scratch, whole, killed));
  BOOST_TEST(program::summary_without_clock(whole) == program::summary_without_clock(killed));
}

BOOST_AUTO_TEST_CASE(two_processes_do_not_share_a_folder) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", long_experiment());
  const fs::path folder = scratch / "run";
  Running first(scratch, {"run", file, "--quiet", "--out", folder.string(), "--checkpoint-seconds", "0"});
  BOOST_REQUIRE(first.wait_for(folder / "checkpoints" / "simulation.0", 60.0));
  const auto second = program::iclflow(scratch, {"run", file, "--quiet", "--out", folder.string(), "--resume"});
  BOOST_TEST(second.code == 2);
  BOOST_TEST(second.err.find("another process is running into it") != std::string::npos, second.err);
  BOOST_TEST(first.wait().code == 0);
  run(scratch, file, "run", {"--resume"});
}

BOOST_AUTO_TEST_CASE(a_damaged_run_folder_is_bad_input) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const fs::path whole = run(scratch, file, "run");
  const std::string trajectory = program::read(whole / "trajectory.nc");
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& names) {
    const auto answer = program::iclflow(scratch, arguments);
    BOOST_TEST(answer.code == 2);
    BOOST_TEST(answer.err.find(names) != std::string::npos, answer.err);
    BOOST_TEST(answer.err.find("allowed: ") != std::string::npos, answer.err);
  };
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, trajectory.size() / 2}) {
    scratch.write("run/trajectory.nc", trajectory.substr(0, size));
    check({"report", whole.string()}, "trajectory.nc");
    check({"compare", whole.string(), whole.string()}, "trajectory.nc");
  }
  fs::remove(whole / "trajectory.nc");
  check({"report", whole.string()}, "trajectory.nc: no such file");
  scratch.write("run/trajectory.nc", trajectory);
  scratch.write("run/summary.json", R"({"status": "completed", "dynamics": [5], "expect": 3})");
  check({"run", file, "--out", whole.string(), "--resume"}, "summary.json");
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_written_does_not_take_the_others_with_it) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  // No file may grow beyond 32 kB, as on a full disk: enough for all but trajectory.nc.
  const std::string command = "trap '' XFSZ; ulimit -f 64; '" ICLFLOW_PROGRAM "' run '" + file + "' --out '" +
                              (scratch / "run").string() + "' 2>'" + (scratch / "errors").string() + "' >&-";
  const int status = std::system(("sh -c \"" + command + "\"").c_str());
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 1);
  BOOST_TEST(program::read(scratch / "errors").find("trajectory.nc is missing") != std::string::npos);
  BOOST_TEST(fs::exists(scratch / "run" / "summary.json"));
  BOOST_TEST(fs::exists(scratch / "run" / "checkpoints" / "simulation.1"));
  for (const auto& entry : fs::directory_iterator(scratch / "run")) BOOST_TEST(entry.path().extension() != ".part");
  run(scratch, file, "run", {"--resume"});
  BOOST_TEST(same_arrays(scratch, run(scratch, file, "whole"), scratch / "run"));
}

BOOST_AUTO_TEST_CASE(closed_and_full_outputs_are_failures) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const std::string words = "'" ICLFLOW_PROGRAM "' predict '" + file + "' 2>'" + (scratch / "errors").string() + "' ";
  for (const char* where : {">&-", ">/dev/full", "<&- >&-"}) {
    const int status = std::system((words + where).c_str());
    BOOST_TEST(WEXITSTATUS(status) == 1, where);
    BOOST_TEST(program::read(scratch / "errors") == "iclflow: standard output cannot be written\n", where);
  }
  BOOST_TEST(WEXITSTATUS(std::system("'" ICLFLOW_PROGRAM "' --version >/dev/full 2>/dev/null")) == 1);
}

BOOST_AUTO_TEST_CASE(a_file_name_that_is_not_utf8_still_gives_a_title) {
  const Scratch scratch;
  const std::string text = program::replaced(program::small_experiment(), "title = \"Small\"\n", "");
  const fs::path folder = run(scratch, scratch.write("caf\xe9.toml", text), "run");
  BOOST_TEST(summary_of(folder).at("title") == "caf\xef\xbf\xbd");
}

BOOST_AUTO_TEST_CASE(a_damaged_checkpoint_costs_time_only) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const fs::path whole = run(scratch, file, "whole");
  const fs::path half = scratch / "half";
  fs::create_directories(half / "checkpoints");
  fs::copy_file(whole / "experiment.toml", half / "experiment.toml");
  scratch.write("half/checkpoints/simulation.0", "iclflow checkpoint 2\nbroken");
  run(scratch, file, "half", {"--resume"});
  BOOST_TEST(same_arrays(scratch, whole, half));
}

BOOST_AUTO_TEST_CASE(a_diverging_run_says_so_and_keeps_what_it_had) {
  const Scratch scratch;
  std::string text = program::replaced(program::small_experiment(), "learning_rate = 0.05", "learning_rate = 40.0");
  text = program::replaced(text, "final = 0.5\nsamples = 5", "final = 4000.0\nsamples = 100");
  const auto answer =
      program::iclflow(scratch, {"run", scratch.write("e.toml", text), "--quiet", "--out", (scratch / "run").string()});
  BOOST_TEST(answer.code == 1);
  BOOST_TEST(answer.err.find("simulation: ") != std::string::npos, answer.err);
  BOOST_TEST(answer.err.find("t = ") != std::string::npos, answer.err);
  const auto summary = summary_of(scratch / "run");
  BOOST_TEST(summary.at("status") == "failed");
  BOOST_TEST(summary.at("dynamics").at(0).at("status") == "completed");
  BOOST_TEST(summary.at("dynamics").at(1).at("status") == "failed");
  BOOST_TEST(fs::exists(scratch / "run" / "trajectory.nc"));
  BOOST_TEST(summary.dump().find("nan") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_missed_expectation_is_exit_1) {
  const Scratch scratch;
  const std::string text = program::small_experiment() + "[expect]\nloss_gap = 10.0\nmu_gap = 1e-9\n";
  const auto answer =
      program::iclflow(scratch, {"run", scratch.write("e.toml", text), "--quiet", "--out", (scratch / "run").string()});
  BOOST_TEST(answer.code == 1);
  BOOST_TEST(answer.err.find("expected mu_gap of at most 1e-09") != std::string::npos, answer.err);
  const auto expect = summary_of(scratch / "run").at("expect");
  BOOST_TEST(expect.at(0).at("key") == "loss_gap");
  BOOST_TEST(expect.at(0).at("met").get<bool>());
  BOOST_TEST(!expect.at(1).at("met").get<bool>());
  BOOST_TEST(expect.at(1).at("value").get<double>() > 1e-9);
}

BOOST_AUTO_TEST_CASE(prediction_and_lists_go_to_stdout) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const auto json = program::iclflow(scratch, {"predict", file, "--json"});
  BOOST_TEST(json.code == 0, json.err);
  const auto prediction = nlohmann::json::parse(json.out);
  BOOST_TEST(prediction.at("dedicated").at("mu").size() == 2U);
  BOOST_TEST(prediction.at("warm_up").size() == 2U);
  const auto text = program::iclflow(scratch, {"predict", file});
  BOOST_TEST(text.out.find("dedicated loss") != std::string::npos);
  const auto list = program::iclflow(scratch, {"list"});
  for (const char* word : {"regression", "large-context", "dopri5", "leakage", "tokens", "authors", "autoregressive"}) {
    BOOST_TEST(list.out.find(word) != std::string::npos, word);
  }
  BOOST_TEST(program::iclflow(scratch, {"--version"}).out.find("iclflow ") == 0U);
  BOOST_TEST(program::iclflow(scratch, {"--help"}).code == 0);
}

BOOST_AUTO_TEST_CASE(numbers_do_not_follow_the_locale) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  ::setenv("LC_ALL", "de_DE.UTF-8", 1);
  const auto json = program::iclflow(scratch, {"predict", file, "--json"});
  ::unsetenv("LC_ALL");
  BOOST_TEST(json.out == program::iclflow(scratch, {"predict", file, "--json"}).out);
}

BOOST_AUTO_TEST_CASE(a_hostile_title_is_only_text) {
  const Scratch scratch;
  const std::string mark = (scratch / "mark").string();
  std::string text =
      program::replaced(program::small_experiment(), "title = \"Small\"",
                        "title = '''`touch " + mark + "` \"; system \"touch " + mark +
                            "\"; @x {/Bold y} <script>alert(1)</script> ]]> \\\" % \n$(touch " + mark + ")'''");
  text = program::replaced(text, "figures = []", "figures = [\"loss\"]");
  const fs::path folder = run(scratch, scratch.write("e.toml", text), "run");
  BOOST_TEST(!fs::exists(mark));
  BOOST_TEST(fs::exists(folder / "figures" / "loss.svg"));
  BOOST_TEST(program::read(folder / "report.html").find("<script>") == std::string::npos);
  BOOST_TEST(program::read(folder / "figures" / "loss.svg").find("]]>") == std::string::npos);  // not well-formed XML
  fs::remove_all(folder / "figures");
  const auto report = program::iclflow(scratch, {"report", folder.string()});
  BOOST_TEST(report.code == 0, report.err);
  BOOST_TEST(fs::exists(folder / "figures" / "loss.svg"));
  BOOST_TEST(!fs::exists(mark));
}

BOOST_AUTO_TEST_CASE(what_is_no_figure_is_not_taken_for_one) {
  const Scratch scratch;
  const std::string text = program::replaced(program::small_experiment(), "figures = []", "figures = [\"loss\"]");
  const std::string file = scratch.write("e.toml", text);
  const std::string fake = scratch.write(
      "bin/gnuplot", "#!/bin/sh\ncat >/dev/null\nfor f in svg pdf png; do echo '<script>' >figure.$f; done\n");
  fs::permissions(fake, fs::perms::owner_all);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", ((scratch / "bin").string() + ":" + path).c_str(), 1);
  const auto answer = program::iclflow(scratch, {"run", file, "--quiet", "--out", (scratch / "run").string()});
  ::setenv("PATH", path.c_str(), 1);
  BOOST_TEST(answer.err.find("no valid svg") != std::string::npos, answer.err);
  BOOST_TEST(fs::is_empty(scratch / "run" / "figures"));
  BOOST_TEST(program::read(scratch / "run" / "report.html").find("<script>") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(without_gnuplot_the_data_are_kept) {
  const Scratch scratch;
  const std::string text = program::replaced(program::small_experiment(), "figures = []", "figures = [\"loss\"]");
  const std::string file = scratch.write("e.toml", text);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const auto answer = program::iclflow(scratch, {"run", file, "--out", (scratch / "run").string()});
  ::setenv("PATH", path.c_str(), 1);
  BOOST_TEST(answer.code == 0);
  BOOST_TEST(answer.err.find("gnuplot") != std::string::npos, answer.err);
  BOOST_TEST(summary_of(scratch / "run").at("status") == "completed");
  BOOST_TEST(fs::exists(scratch / "run" / "trajectory.nc"));
  BOOST_TEST(fs::exists(scratch / "run" / "report.html"));
}

BOOST_AUTO_TEST_SUITE_END()
