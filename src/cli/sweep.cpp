#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>
#include <thread>

#include "commands.hpp"
#include "iclflow/experiment/sweep_run.hpp"
#include "interruption.hpp"
#include "progress_bar.hpp"

namespace iclflow::cli {

namespace {

struct Arguments {
  std::string file;
  std::string out;
  std::string shard;
  int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 1024U));
  double checkpoint_seconds = 10.0;
  bool resume = false;
  bool merge = false;
  bool theory = false;
  bool quiet = false;
};

/// "2/8": the second of eight.
Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  std::size_t index = 0;
  std::size_t count = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index);
  const bool parted = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = parted ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!parted || second.ec != std::errc() || second.ptr != end || index < 1 || index > count) {
    throw InputError(fmt::format("--shard: impossible value ({}); allowed: i/n with 1 <= i <= n", text));
  }
  return {index - 1, count};
}

Watch watch_with(const std::shared_ptr<ProgressBar>& bar, bool quiet) {
  Watch watch;
  watch.interrupted = was_interrupted;
  watch.progress = [bar](const std::string& label, double fraction, double done) {
    bar->show(label, fraction, done, "members");
  };
  if (!quiet) {
    watch.message = [bar](const std::string& text) {
      bar->clear();
      std::cerr << one_line(text) << '\n';
    };
  }
  watch.problem = [bar](const std::string& text) {
    bar->clear();
    std::cerr << "iclflow: " << one_line(text) << '\n';
  };
  return watch;
}

int exit_code(RunStatus status) {
  if (status == RunStatus::interrupted) return interrupted;
  return status == RunStatus::completed ? done : failed;
}

int sweep_file(const Arguments& arguments) {
  const Shard shard = parse_shard(arguments.shard);
  const bool sharded = !arguments.shard.empty();
  if (sharded && arguments.merge) throw InputError("--shard beside --merge; allowed: one of them");
  catch_interruptions();
  const std::string text = read_text(arguments.file);
  Document document = parse_document(text, arguments.file);
  if (!is_sweep(document)) {
    throw InputError(arguments.file + ":1: key 'sweep': is missing; allowed: a table [sweep], or iclflow run FILE");
  }
  const Systems all = systems();
  const Sweep sweep(std::move(document), all, arguments.theory);
  const std::filesystem::path out = arguments.out.empty()
                                        ? std::filesystem::path("runs") / std::filesystem::path(arguments.file).stem()
                                        : std::filesystem::path(arguments.out);
  const auto bar = std::make_shared<ProgressBar>(!arguments.quiet);
  const Watch watch = watch_with(bar, arguments.quiet);
  const bool existing = arguments.resume || sharded;
  const SweepFolder folder =
      arguments.merge ? SweepFolder::open(out, sweep) : SweepFolder::create(out, sweep, text, existing);
  RunStatus status = RunStatus::completed;
  if (!arguments.merge) {
    status = run_members(sweep, folder, shard, {arguments.threads, arguments.checkpoint_seconds, false}, watch);
    bar->clear();
  }
  if (sharded || status == RunStatus::interrupted) return exit_code(status);
  status = finish_sweep(sweep, folder, watch);
  if (!arguments.quiet) std::cout << folder.path().string() << '\n';
  return exit_code(status);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("sweep", "run an experiment over a range of its keys, one row per member");
  auto arguments = std::make_shared<Arguments>();
  const auto named = [](const std::string& path) { return std::string(path.empty() ? "the name is empty" : ""); };
  command->add_option("FILE", arguments->file, "experiment with a [sweep] table (TOML)")->required();
  command->add_option("--out", arguments->out, "folder of the sweep; default runs/<stem of FILE>")->check(named);
  command->add_option("--threads", arguments->threads, "members at a time; never changes a result")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--checkpoint-seconds", arguments->checkpoint_seconds, "least time between checkpoints; default 10")
      ->check(CLI::Range(0.0, 1e9))
      ->check([](const std::string& text) { return std::string(text.find("nan") == 0 ? "not a number" : ""); });
  command->add_flag("--resume", arguments->resume, "run what is missing or failed of an earlier sweep");
  command->add_option("--shard", arguments->shard, "i/n: run only every n-th member, from the i-th (1 to n)");
  command->add_flag("--merge", arguments->merge, "run nothing: join what the shards left into the table");
  command->add_flag("--theory", arguments->theory, "leave the simulations out");
  command->add_flag("--quiet", arguments->quiet, "say nothing but what went wrong");
  command->callback([&action, arguments] { action = [arguments] { return sweep_file(*arguments); }; });
}

}  // namespace iclflow::cli
