#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>

#include "commands.hpp"
#include "iclflow/experiment/sweep_members.hpp"
#include "iclflow/experiment/sweep_run.hpp"
#include "interruption.hpp"
#include "watched_run.hpp"

namespace iclflow::cli {

namespace {

struct Arguments : WatchedArguments {
  std::string shard;
  bool merge = false;
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
  const std::filesystem::path out = arguments.folder();
  const auto bar = std::make_shared<ProgressBar>(!arguments.quiet);
  const Watch watch = watch_with(bar, arguments.quiet, "members");
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
  add_watched_options(*command, *arguments, "members at a time; never changes a result",
                      "run what is missing or failed of an earlier sweep");
  command->add_option("--shard", arguments->shard, "i/n: run only every n-th member, from the i-th (1 to n)");
  command->add_flag("--merge", arguments->merge, "run nothing: join what the shards left into the table");
  command->callback([&action, arguments] { action = [arguments] { return sweep_file(*arguments); }; });
}

}  // namespace iclflow::cli
