#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

using program::Finished;
using program::Running;
using program::Scratch;
namespace fs = std::filesystem;

namespace {

/// Six members of two seeds each, a fit and two checks; a second or so.
std::string small_sweep() {
  return program::small_experiment() + R"toml([sweep]
"dynamics.simulation.batch" = { from = 100, to = 400, factor = 2 }
"problem.noise_variance" = [0.1, 0.4]
[[scaling]]
name = "leakage"
x = "dynamics.simulation.batch"
y = ["dynamics.simulation.leakage.key_query"]
group = "problem.noise_variance"
exponent = -0.5
[[check]]
statement = "theory does not depend on the batch"
quantity = "ratio(max(dynamics.theory.final_loss), min(dynamics.theory.final_loss))"
members = "*noise_variance=0.1"
value = 1.0
[[check]]
statement = "leakage falls"
quantity = "scaling.leakage.dynamics.simulation.leakage.key_query.0.1.exponent"
at_most = 0.0
)toml";
}

fs::path sweep(const Scratch& scratch, const std::string& file, const std::string& name,
               const std::vector<std::string>& options = {}, int code = 0) {
  return program::into(scratch, "sweep", file, name, options, code);
}

/// Table and summary hold no clock, so that they are the same to the byte.
void check_same(const fs::path& a, const fs::path& b) {
  for (const char* file : {"table.csv", "table.nc", "summary.json", "figures/leakage.svg"}) {
    BOOST_TEST(!program::read(a / file).empty(), file);
    BOOST_TEST(program::read(a / file) == program::read(b / file), file);
  }
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

nlohmann::json summary_of(const fs::path& folder) {
  return nlohmann::json::parse(program::read(folder / "summary.json"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sweeps)

BOOST_AUTO_TEST_CASE(threads_shards_and_launchers_give_the_same_table) {
  const Scratch scratch;
  const std::string file = scratch.write("s.toml", small_sweep());
  const fs::path one = sweep(scratch, file, "one", {"--threads", "1"});
  BOOST_TEST(fs::exists(one / "report.html"));
  BOOST_TEST(!fs::exists(one / "members" / "batch=100,noise_variance=0.1" / "report.html"));
  BOOST_TEST(count(program::read(one / "table.csv"), "\r\n") == 7U);
  check_same(one, sweep(scratch, file, "two", {"--threads", "2"}));

  const std::vector<std::string> words{ICLFLOW_PROGRAM, "sweep", file,    "--quiet",
                                       "--threads",     "1",     "--out", (scratch / "par").string()};
  std::vector<std::string> parallel{"--will-cite", "-j", "3"};
  parallel.insert(parallel.end(), words.begin(), words.end());
  parallel.insert(parallel.end(), {"--shard", "{}/3", ":::", "1", "2", "3"});
  const Finished spread = Running(scratch, "parallel", parallel).wait();
  BOOST_REQUIRE_MESSAGE(spread.code == 0, spread.err);
  check_same(one, sweep(scratch, file, "par", {"--merge"}));

  std::string line;
  for (const std::string& word : words) line += "'" + word + "' ";
  line.replace(line.find((scratch / "par").string()), (scratch / "par").string().size(), (scratch / "mpi").string());
  const std::string rank = "--shard $((OMPI_COMM_WORLD_RANK + 1))/$OMPI_COMM_WORLD_SIZE";
  const Finished ranks =
      Running(scratch, "mpirun", {"--allow-run-as-root", "--oversubscribe", "-n", "2", "sh", "-c", line + rank}).wait();
  BOOST_REQUIRE_MESSAGE(ranks.code == 0, ranks.err);
  check_same(one, sweep(scratch, file, "mpi", {"--merge"}));
}

BOOST_AUTO_TEST_CASE(a_merge_tells_what_is_missing) {
  const Scratch scratch;
  const std::string file = scratch.write("s.toml", small_sweep());
  const fs::path folder = sweep(scratch, file, "part", {"--shard", "2/4"});  // members 1 and 5
  BOOST_TEST(!fs::exists(folder / "table.csv"));
  sweep(scratch, file, "part", {"--merge"}, 1);
  BOOST_TEST(count(program::read(folder / "table.csv"), ",missing,") == 4U);
  BOOST_TEST(count(program::read(folder / "table.csv"), ",completed,") == 2U);
  BOOST_TEST(summary_of(folder).at("members").at("completed") == 2);
  sweep(scratch, file, "nowhere", {"--merge"}, 2);
}

BOOST_AUTO_TEST_CASE(a_killed_sweep_goes_on_to_the_same_table) {
  const Scratch scratch;
  const std::string file = scratch.write("s.toml", small_sweep());
  const fs::path whole = sweep(scratch, file, "whole");
  Running running(scratch, {"sweep", file, "--quiet", "--threads", "1", "--out", (scratch / "killed").string()});
  const fs::path first = scratch / "killed" / "members" / "batch=100,noise_variance=0.1" / "summary.json";
  BOOST_REQUIRE(running.wait_for(first, 60.0));
  running.signal(SIGKILL);
  BOOST_TEST(running.wait().code == 128 + SIGKILL);
  sweep(scratch, file, "killed", {}, 2);  // exists already
  check_same(whole, sweep(scratch, file, "killed", {"--resume"}));
  const auto touched = fs::last_write_time(first);
  sweep(scratch, file, "killed", {"--resume"});  // nothing is left to run
  BOOST_TEST((touched == fs::last_write_time(first)));
  const std::string other = program::replaced(small_sweep(), "omega = 0.1", "omega = 0.2");
  sweep(scratch, scratch.write("other.toml", other), "killed", {"--resume"}, 2);
}

BOOST_AUTO_TEST_CASE(an_interrupted_sweep_keeps_what_it_has) {
  const Scratch scratch;
  const std::string file = scratch.write("s.toml", small_sweep());
  Running running(scratch, {"sweep", file, "--quiet", "--threads", "2", "--out", (scratch / "stopped").string()});
  BOOST_REQUIRE(running.wait_for(scratch / "stopped" / "sweep.toml", 60.0));
  running.signal(SIGINT);
  const Finished answer = running.wait();
  BOOST_TEST(answer.code == 130);
  BOOST_TEST(answer.err.find("--resume goes on") != std::string::npos, answer.err);
  check_same(sweep(scratch, file, "whole"), sweep(scratch, file, "stopped", {"--resume"}));
}

BOOST_AUTO_TEST_CASE(a_failed_member_is_a_row_and_not_the_end) {
  const Scratch scratch;
  // a step beyond 2 / curvature diverges
  std::string text =
      program::replaced(program::small_experiment(), "final = 0.5\nsamples = 5", "final = 400.0\nsamples = 5");
  text = program::replaced(text, "learning_rate = 0.05", "learning_rate = 0.4") +
         "[sweep]\n\"dynamics.simulation.learning_rate\" = [0.05, 20.0, 0.1]\n\"dynamics.simulation.batch\" = [20]\n";
  const fs::path folder = sweep(scratch, scratch.write("s.toml", text), "out", {}, 1);
  const std::string table = program::read(folder / "table.csv");
  BOOST_TEST(count(table, ",completed,") == 2U, table);
  BOOST_TEST(count(table, "\"learning_rate=20,batch=20\",failed,") == 1U, table);
  const auto broken = summary_of(folder).at("members").at("not_completed");
  BOOST_REQUIRE_EQUAL(broken.size(), 1U);
  BOOST_TEST(broken[0].at("member") == "learning_rate=20,batch=20");
  BOOST_TEST(!broken[0].at("error").get<std::string>().empty());
  BOOST_TEST(program::read(folder / "report.html").find("did not complete: 1 of 3") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_missed_check_or_expectation_is_exit_1) {
  const Scratch scratch;
  const std::string wrong = program::replaced(small_sweep(), "value = 1.0", "value = 1.5");
  const std::string file = scratch.write("wrong.toml", wrong);
  const Finished answer =
      program::iclflow(scratch, {"sweep", file, "--theory", "--quiet", "--out", (scratch / "wrong").string()});
  BOOST_TEST(answer.code == 1);
  BOOST_TEST(answer.err.find("check missed: theory does not depend on the batch") != std::string::npos, answer.err);
  BOOST_TEST(count(answer.err, "\n") == 1U);  // the other one cannot be measured without simulation
  const auto checks = summary_of(scratch / "wrong").at("checks");
  BOOST_TEST(checks.at(0).at("met") == false);
  BOOST_TEST(checks.at(1).at("met").is_null());
  const std::string expecting = small_sweep() + "[expect]\nloss_gap = 1e-9\n";
  const fs::path folder = sweep(scratch, scratch.write("expecting.toml", expecting), "expecting", {}, 1);
  BOOST_TEST(count(program::read(folder / "table.csv"), ",expectation missed,\"expected loss_gap") == 6U);
}

BOOST_AUTO_TEST_CASE(checks_of_a_run) {
  const Scratch scratch;
  const std::string claim = "[claim]\nstatement = \"it learns | fast\"\nsource = \"here\"\n";
  const std::string check = "[[check]]\nstatement = \"loss falls\"\nquantity = \"dynamics.simulation.final_loss\"\n";
  const auto run = [&](const std::string& name, const std::string& bound, const std::vector<std::string>& more) {
    const std::string file = scratch.write(name + ".toml", program::small_experiment() + claim + check + bound);
    std::vector<std::string> arguments{"run", file, "--quiet", "--out", (scratch / name).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return program::iclflow(scratch, arguments);
  };
  BOOST_TEST(run("good", "at_most = 2.4\n", {}).code == 0);
  const Finished bad = run("bad", "value = 1.0\nrejected = [3]\n", {});
  BOOST_TEST(bad.code == 1);
  BOOST_TEST(count(bad.err, "check missed: loss falls") == 1U, bad.err);
  BOOST_TEST(run("bad", "value = 1.0\nrejected = [3]\n", {"--resume"}).code == 1);
  BOOST_TEST(run("theory", "value = 1.0\n", {"--theory"}).code == 0);
  BOOST_TEST(summary_of(scratch / "theory").at("dynamics").size() == 1U);
  BOOST_TEST(program::read(scratch / "bad" / "report.html").find("Checks missed: 1 of 1") != std::string::npos);

  const auto table = [&](const std::vector<std::string>& names) {
    std::vector<std::string> arguments{"claims"};
    for (const std::string& name : names) arguments.push_back((scratch / name).string());
    return program::iclflow(scratch, arguments);
  };
  const Finished shown = table({"good", "theory"});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(count(shown.out, "| it learns \\| fast | here | good | loss falls |") == 1U, shown.out);
  BOOST_TEST(count(shown.out, "| shown |") == 1U);
  BOOST_TEST(count(shown.out, "| not measured |") == 1U);
  const Finished missed = table({"bad", "nowhere", "good"});
  BOOST_TEST(missed.code == 1);
  BOOST_TEST(count(missed.out, "**missed**") == 1U);
  BOOST_TEST(count(missed.out, "did not finish") == 1U);
}

BOOST_AUTO_TEST_CASE(bad_use_is_exit_2_in_one_line) {
  const Scratch scratch;
  const std::string file = scratch.write("s.toml", small_sweep());
  const std::string plain = scratch.write("plain.toml", program::small_experiment());
  const std::string unknown =
      scratch.write("unknown.toml", program::small_experiment() + "[sweep]\n\"problem.hedas\" = [1, 2]\n");
  const std::string out = (scratch / "out").string();
  const std::vector<std::vector<std::string>> uses{{"sweep", file, "--out", out, "--shard", "0/3"},
                                                   {"sweep", file, "--out", out, "--shard", "4/3"},
                                                   {"sweep", file, "--out", out, "--shard", "x"},
                                                   {"sweep", file, "--out", out, "--shard", "1/3/"},
                                                   {"sweep", file, "--out", out, "--shard", "1/3", "--merge"},
                                                   {"sweep", file, "--out", out, "--merge"},
                                                   {"sweep", file, "--out", file},
                                                   {"sweep", plain, "--out", out},
                                                   {"sweep", unknown, "--out", out},
                                                   {"run", file, "--out", out}};
  for (const auto& use : uses) {
    const Finished answer = program::iclflow(scratch, use);
    BOOST_TEST(answer.code == 2, use.back());
    BOOST_TEST(count(answer.err, "\n") == 1U, answer.err);
  }
  BOOST_TEST(!fs::exists(out));
}

BOOST_AUTO_TEST_SUITE_END()
