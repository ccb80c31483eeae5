
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "program.hpp"

using program::Scratch;

namespace {

/// One thing wrong with the small experiment: what is replaced by what, and what the one line must name.
struct Mistake {
  std::string from;
  std::string to;
  std::string key;
  std::string says;
  int line_offset = 0;  ///< line at fault, counted from the line of `from`
};

std::vector<Mistake> mistakes() {
  return {
      {"heads = 2", "heads = 2\nheds = 2", "problem.heds", "allowed: heads, task_dimensions", 1},
      {"title = \"Small\"", "titel = \"Small\"", "titel", "allowed: title, system"},
      {"stepper = \"dopri5\"", "steper = \"dopri5\"", "dynamics[0].steper", "stepper"},
      {"heads = 2", "heads = \"two\"", "problem.heads", "an integer"},
      {"heads = 2", "heads = 2.0", "problem.heads", "an integer"},
      {"heads = 2", "heads = 0", "problem.heads", "(0)"},
      {"heads = 2", "heads = -3", "problem.heads", "(-3)"},
      {"heads = 2", "heads = 1000000000", "problem.heads", "(1000000000)"},
      {"heads = 2", "heads = true", "problem.heads", "(true)"},
      {"heads = 2\n", "", "problem.heads", "is missing", -1},
      {"task_dimensions = [2, 3]", "task_dimensions = [2, 0]", "problem.task_dimensions[1]", "(0)"},
      {"task_dimensions = [2, 3]", "task_dimensions = []", "problem.task_dimensions", "empty"},
      {"task_dimensions = [2, 3]", "task_dimensions = 5", "problem.task_dimensions", "an array"},
      {"task_dimensions = [2, 3]", "task_dimensions = [2, 65000]\n", "problem.task_dimensions", "allowed"},
      {"context_length = 20", "context_length = -1", "problem.context_length", "(-1)"},
      {"noise_variance = 0.1", "noise_variance = nan", "problem.noise_variance", "finite"},
      {"noise_variance = 0.1", "noise_variance = inf", "problem.noise_variance", "finite"},
      {"noise_variance = 0.1", "noise_variance = -0.1", "problem.noise_variance", "at least 0"},
      {"noise_variance = 0.1", "noise_variance = 0x10", "problem.noise_variance", "decimal"},
      {"noise_variance = 0.1", "noise_variance = 1979-05-27", "problem.noise_variance", "a date"},
      {"noise_variance = 0.1", "signal_variance = [1.0]", "problem.signal_variance", "one per task"},
      {"noise_variance = 0.1", "signal_variance = 0", "problem.signal_variance", "above 0"},
      {"response_scale = \"unit\"", "response_scale = \"units\"", "problem.response_scale", "\"unit\""},
      {"noise_variance = 0.1", "parametrisation = \"merged\"\nscore_scale = \"unit\"", "problem.score_scale", "split",
       1},
      {"noise_variance = 0.1", "rotation_seed = 1", "problem.rotation_seed", "not known"},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]", "mu = [[0.3, 0.1], [0.1]]", "initial.mu[1]", "ragged"},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]", "mu = [[0.3, 0.1]]", "initial.mu", "2 x 2"},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]", "mu = [[0.3, 0.1, 0.0], [0.1, 0.3, 0.0]]", "initial.mu", "2 x 2"},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]", "mu = [\n[0.3, 0.1],\n[0.1, \"x\"]]", "initial.mu[1][1]", "wrong type", 2},
      {"omega = 0.1", "omega = [[0.1, 0.1, 0.1], [0.1, 0.1, 0.1]]", "initial.omega", "2 x 5"},
      {"omega = 0.1", "omega = inf", "initial.omega", "finite"},
      {"omega = 0.1", "omega = 0.1\npreset = \"authors\"", "initial.preset", "one of", 1},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]\nomega = 0.1", "weights = \"none.json\"", "initial.weights", "no such file"},
      {"mu = [[0.3, 0.1], [0.1, 0.3]]\nomega = 0.1", "preset = \"aligned\"", "initial.scale", "is missing", -1},
      {"final = 0.5", "final = 0", "time.final", "above 0"},
      {"final = 0.5", "final = -1.0", "time.final", "above 0"},
      {"samples = 5", "samples = 0", "time.samples", "(0)"},
      {"samples = 5", "samples = 900000000000", "time.samples", "1000000"},
      {"samples = 5", "samples = 11", "time.samples", "fall on one step"},
      {"spacing = \"linear\"", "spacing = \"log\"\nfirst = 0.5", "time.first", "below", 1},
      {"name = \"simulation\"", "name = \"theory\"", "dynamics[1].name", "used twice"},
      {"name = \"theory\"", "name = \"the ory\"", "dynamics[0].name", "A-Z"},
      {"name = \"theory\"", "name = \"../x\"", "dynamics[0].name", "A-Z"},
      {"kind = \"spectral-flow\"", "kind = \"flow\"", "dynamics[0].kind", "\"spectral-flow\""},
      {"kind = \"spectral-flow\"\n", "", "dynamics[0].kind", "is missing", -2},
      {"stepper = \"dopri5\"", "stepper = \"euler\"", "dynamics[0].step", "is missing", -3},
      {"stepper = \"dopri5\"", "stepper = \"rk5\"", "dynamics[0].stepper", "\"rk4\""},
      {"stepper = \"dopri5\"", "relative_tolerance = 0", "dynamics[0].relative_tolerance", "above 0"},
      {"stepper = \"dopri5\"", "closure = \"exact\"", "dynamics[0].closure", "\"finite-dimension\", \"sampled\""},
      {"stepper = \"dopri5\"", "contexts = 4000", "dynamics[0].contexts", "not known"},
      {"stepper = \"dopri5\"", "closure = \"sampled\"\ncontexts = 63", "dynamics[0].contexts", "64", 1},
      {"stepper = \"dopri5\"", "closure = \"sampled\"\nseed = -1", "dynamics[0].seed", "(-1)", 1},
      {"name = \"simulation\"", "name = \"theory_event\"", "dynamics[1].name", "without _event"},
      {"stepper = \"dopri5\"", "stepper = \"rk4\"\nstep = 1e-300", "dynamics[0].step", "maximum_steps", 1},
      {"noise_variance = 0.1", "noise_variance = 1e308", "problem.noise_variance", "at most 1e+60 times"},
      {"noise_variance = 0.1", "signal_variance = [1.0, 1e-300]", "problem.signal_variance", "powers from"},
      {"context_length = 20", "context_length = 16777216", "dynamics[1].kind", "shorter context", 16},
      {"task_dimensions = [2, 3]", "task_dimensions = [2, 4000]", "dynamics[1].kind", "fewer heads", 17},
      {"learning_rate = 0.05", "learning_rate = 0", "dynamics[1].learning_rate", "above 0"},
      {"learning_rate = 0.05\n", "", "dynamics[1].learning_rate", "is missing", -3},
      {"batch = 1009", "batch = 0", "dynamics[1].batch", "(0)"},
      {"seeds = [1, 2]", "seeds = [1, 1]", "dynamics[1].seeds", "twice"},
      {"seeds = [1, 2]", "seeds = [-1]", "dynamics[1].seeds[0]", "(-1)"},
      {"batch = 1009", "estimator = \"score\"", "dynamics[1].estimator", "\"tokens\", \"score-space\""},
      {"learning_rate = 0.05", "method = \"gradient-flow\"\nestimator = \"score-space\"", "dynamics[1].estimator",
       "method = \"sgd\"", 1},
      {"batch = 1009", "precision = \"half\"", "dynamics[1].precision", "\"single\""},
      {"quantity = \"mu[0][0]\"", "quantity = \"mu[2][0]\"", "event[0].quantity", "h = 0..1"},
      {"level = 0.32", "level = nan", "event[0].level", "finite"},
      {"figures = []", "figures = [\"los\"]", "report.figures", "loss, spectrum"},
      {"[report]", "[expect]\nloss_gap = -1\n[report]", "expect.loss_gap", "at least 0", 1},
      {"[report]", "[expect]\nlos_gap = 1\n[report]", "expect.los_gap", "loss_gap", 1},
      {"[report]", "[sweep]\nx = 1\n[report]", "sweep", "iclflow sweep FILE"},
      {"[report]", "[optimum]\nstarts = 0\n[report]", "optimum.starts", "from 1 to 100000", 1},
      {"[report]", "[optimum]\nclosure = \"finite-dimension\"\n[report]", "optimum.closure", "\"sampled\"", 1},
      {"[report]", "[optimum]\nstart = 3\n[report]", "optimum.start", "starts", 1},
      {"[report]", "[stability]\nmodes = -1\n[report]", "stability.modes", "from 0 to ", 1},
      {"[report]", "[stability]\nlow = 0.5\n[report]", "stability.high", "more than low (0.5)"},
      {"[report]", "[stability]\nmode = 3\n[report]", "stability.mode", "modes", 1},
      {"title = \"Small\"", "system = \"autoregressive\"", "sequence", "a table"},
      {"title = \"Small\"", "system = \"mesa\"", "system", "\"regression\""},
      {"[problem]", "[[problem]]", "problem", "a table"},
      {"[initial]", "[[initial]]", "initial", "a table"},
  };
}

long line_of(const std::string& text, const std::string& part) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(text.find(part)), '\n');
}

bool is_one_line(const std::string& text) { return std::count(text.begin(), text.end(), '\n') == 1; }

void check_refused(const program::Finished& answer, const std::vector<std::string>& words) {
  BOOST_TEST(answer.code == 2);
  BOOST_TEST(answer.out == "");
  BOOST_TEST(is_one_line(answer.err), answer.err);
  for (const std::string& word : words)
    BOOST_TEST(answer.err.find(word) != std::string::npos, word + " in " + answer.err);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(bad_input)

BOOST_AUTO_TEST_CASE(every_mistake_is_one_line_with_file_line_and_key) {
  const Scratch scratch;
  const std::string base = program::small_experiment();
  const auto all = mistakes();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Mistake& mistake = all[k];
    const std::string name = fmt::format("e{}.toml", k);
    const std::string file = scratch.write(name, program::replaced(base, mistake.from, mistake.to));
    const long line = line_of(base, mistake.from) + mistake.line_offset;
    BOOST_TEST_CONTEXT(mistake.to << " instead of " << mistake.from) {
      const auto answer = program::iclflow(scratch, {"run", file, "--out", (scratch / "run").string()});
      check_refused(answer, {fmt::format("{}:{}: key '{}': ", name, line, mistake.key), mistake.says});
      BOOST_TEST(!std::filesystem::exists(scratch / "run"));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_start_where_the_closure_does_not_hold) {
  const Scratch scratch;
  const auto refused = [&](const std::string& omega, const std::string& condition) {
    const std::string base = program::replaced(program::small_experiment(), "omega = 0.1", "omega = " + omega);
    const std::string text =
        program::replaced(base, "stepper = \"dopri5\"", "stepper = \"dopri5\"\nclosure = \"finite-dimension\"");
    const auto answer = program::iclflow(scratch, {"run", scratch.write("e.toml", text), "--out", "run"});
    check_refused(answer, {fmt::format("e.toml:{}: key 'dynamics[0].closure': ", line_of(text, "closure")), condition,
                           "closure = \"sampled\""});
  };
  refused("0.71", "2 omega^2 = 1.0082 of head 0 on task 0 (omega = 0.71) must be below 1");
  // (1 - 2 0.45^2)^(-5/2) / 20 = 0.183 holds, with 0.48 it is 0.234.
  refused("0.48", "D / L = 0.234");
}

BOOST_AUTO_TEST_CASE(a_start_that_cannot_be_trained_in_score_space) {
  const Scratch scratch;
  const auto run = [&](const std::string& initial, const std::string& merged, const std::string& out) {
    std::string text = program::replaced(program::small_experiment(), "omega = 0.1", "omega = 0.1\n" + initial);
    text = program::replaced(text, "heads = 2", "heads = 2\n" + merged);
    text = program::replaced(text, "batch = 1009", "batch = 16\nestimator = \"score-space\"");
    const auto answer = program::iclflow(scratch, {"run", scratch.write("e.toml", text), "--quiet", "--out", out});
    return std::pair(answer, fmt::format("e.toml:{}: key 'dynamics[1].estimator': ", line_of(text, "estimator")));
  };
  const auto [noisy, where] = run("perturbation = 0.01", "", (scratch / "noisy").string());
  check_refused(noisy, {where, "does not hold at the start: K_Y^T Q_X of head 0 is not zero (its size is ",
                        "\"tokens\", or weights with K_Y^T Q_X = K_Y^T K_X = 0", "perturbation = 0"});
  const auto [inert, nowhere] = run("inert = 0.3", "", (scratch / "inert").string());
  BOOST_TEST(inert.code == 0, inert.err);
  const auto [merged, neither] =
      run("perturbation = 0.01", "parametrisation = \"merged\"", (scratch / "merged").string());
  BOOST_TEST(merged.code == 0, merged.err);
}

BOOST_AUTO_TEST_CASE(files_that_are_no_experiments) {
  const Scratch scratch;
  const std::string folder = (scratch / "folder").string();
  std::filesystem::create_directory(folder);
  check_refused(program::iclflow(scratch, {"run", folder}), {folder, "directory"});
  const std::string missing = (scratch / "missing.toml").string();
  check_refused(program::iclflow(scratch, {"run", missing}), {missing, "no such file"});
  const std::string empty = scratch.write("empty.toml", "");
  check_refused(program::iclflow(scratch, {"run", empty}), {empty, "empty"});
  const std::string binary = scratch.write("binary.toml", std::string("\x7f"
                                                                      "ELF\0\1\2\n",
                                                                      9));
  check_refused(program::iclflow(scratch, {"run", binary}), {binary + ":1"});
  const std::string latin = scratch.write("latin.toml", "title = \"caf\xe9\"\n");
  check_refused(program::iclflow(scratch, {"run", latin}), {latin + ":1", "TOML"});
  const std::string syntax = scratch.write("syntax.toml", "title = \"x\"\n[problem\nheads = 1\n");
  check_refused(program::iclflow(scratch, {"run", syntax}), {syntax + ":2", "TOML"});
  const std::string twice = scratch.write("twice.toml", "title = \"x\"\ntitle = \"y\"\n");
  check_refused(program::iclflow(scratch, {"run", twice}), {twice + ":2"});
  const std::string bare = scratch.write("bare.toml", "title = \"x\"\n");
  check_refused(program::iclflow(scratch, {"run", bare}), {bare + ":1", "'problem'", "is missing"});
  // One table for each dot: such a key once overflowed the stack.
  std::string deep = "a";
  for (int k = 0; k < 100'000; ++k) deep += ".a";
  check_refused(program::iclflow(scratch, {"run", scratch.write("deep.toml", "\n" + deep + " = 1\n")}),
                {"deep.toml:2: ", "dots"});
  check_refused(program::iclflow(scratch, {"run", scratch.write("deep.toml", "[" + deep + "]\n")}), {"deep.toml:1: "});
  check_refused(program::iclflow(scratch, {"run", scratch.write("deep.toml", "x = " + std::string(100'000, '['))}),
                {"deep.toml:1: "});
  const std::string newline = scratch.write("new\nline.toml", "title = 1\n");
  check_refused(program::iclflow(scratch, {"run", newline}), {"key 'title'"});
}

BOOST_AUTO_TEST_CASE(a_file_without_permission_is_named) {
  if (::geteuid() == 0) return;  // root reads everything
  const Scratch scratch;
  const std::string file = scratch.write("secret.toml", program::small_experiment());
  ::chmod(file.c_str(), 0);
  check_refused(program::iclflow(scratch, {"run", file}), {file, "cannot be opened"});
}

BOOST_AUTO_TEST_CASE(pipes_and_devices_are_not_waited_for) {
  const Scratch scratch;
  const std::string pipe = (scratch / "pipe.toml").string();
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_refused(program::iclflow(scratch, {"run", pipe}), {pipe, "empty"});
  check_refused(program::iclflow(scratch, {"run", "/dev/zero"}), {"/dev/zero", "device"});
  std::filesystem::create_symlink("loop.toml", scratch / "loop.toml");
  check_refused(program::iclflow(scratch, {"run", (scratch / "loop.toml").string()}), {"loop.toml", "opened"});
}

BOOST_AUTO_TEST_CASE(folders_that_cannot_be_made) {
  const Scratch scratch;
  const std::string file = scratch.write("e.toml", program::small_experiment());
  const auto run_into = [&](const std::string& folder) {
    return program::iclflow(scratch, {"run", file, "--quiet", "--out", folder});
  };
  check_refused(run_into((scratch / std::string(300, 'x')).string()), {"cannot be made"});
  check_refused(run_into(file + "/run"), {"cannot be made"});
  check_refused(run_into(file), {"exists already"});
  check_refused(run_into(""), {"--out"});
}

BOOST_AUTO_TEST_CASE(the_command_line_itself) {
  const Scratch scratch;
  check_refused(program::iclflow(scratch, {}), {"subcommand"});
  check_refused(program::iclflow(scratch, {"fly"}), {"'fly'", "run, predict"});
  check_refused(program::iclflow(scratch, {"run"}), {"FILE"});
  const std::string file = scratch.write("e.toml", program::small_experiment());
  check_refused(program::iclflow(scratch, {"run", file, "--threads", "0"}), {"--threads"});
  check_refused(program::iclflow(scratch, {"run", file, "--threads", "many"}), {"--threads"});
  check_refused(program::iclflow(scratch, {"run", file, "--fast"}), {"--fast"});
  check_refused(program::iclflow(scratch, {"optimum", file, "--threads", "0"}), {"--threads"});
  check_refused(program::iclflow(scratch, {"optimum"}), {"FILE"});
  check_refused(program::iclflow(scratch, {"report", scratch.write("file", "x")}), {"no such run folder"});
  check_refused(program::iclflow(scratch, {"compare", (scratch / "a").string(), (scratch / "b").string()}),
                {"a: no such"});
}

BOOST_AUTO_TEST_CASE(json_is_refused_with_a_pointer) {
  const Scratch scratch;
  const auto answer = [&](const std::string& text) {
    return program::iclflow(scratch, {"evaluate", scratch.write("w.json", text)});
  };
  const std::string rest = R"("X": [[[1], [2]]], "Y": [[[1]]], "q": [[1, 2]], "target": [[1]]})";
  check_refused(answer("{"), {"w.json:1"});
  check_refused(answer(""), {"w.json", "empty"});
  check_refused(answer("[]"), {"w.json"});
  check_refused(answer(R"({"parametrisation": "merged", "parametrisation": "split"})"), {"'parametrisation'", "twice"});
  check_refused(answer(R"({"parametrisation": "merged", "W": [[[1, 2], [3]]], "U": [[[1]]], )" + rest), {"/W/0/1"});
  check_refused(answer(R"({"parametrisation": "merged", "W": [[[1, 2], [3, 1e999]]], "U": [[[1]]], )" + rest),
                {"w.json:1: ", "1e999"});
  check_refused(answer(R"({"parametrisation": "merged", "a/b\u0000": 1})"), {": /a~1b : unknown key; allowed: "});
  const auto good = answer(R"({"parametrisation": "merged", "W": [[[1, 2], [3, 4]]], "U": [[[0.5]]], )" + rest);
  BOOST_TEST(good.code == 0, good.err);
  // One token has all the attention: yhat = U y = 0.5, loss (0.5 - 1)^2 / 2.
  BOOST_TEST(good.out.find("{\"loss\":0.125,") == 0U, good.out);
}

BOOST_AUTO_TEST_CASE(a_stepper_that_is_not_in_this_build_says_so) {
  const Scratch scratch;
  const bool there = program::iclflow(scratch, {"list"}).out.find("SUNDIALS was not found") == std::string::npos;
  const auto answer = program::iclflow(
      scratch, {"predict", scratch.write("e.toml", program::replaced(program::small_experiment(), "dopri5", "cvode"))});
  BOOST_TEST(answer.code == (there ? 0 : 2));
  BOOST_TEST((there || answer.err.find("not in this build") != std::string::npos), answer.err);
}

BOOST_AUTO_TEST_SUITE_END()
