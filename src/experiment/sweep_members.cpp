#include "iclflow/experiment/sweep_members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "iclflow/attention/thread_team.hpp"

namespace iclflow {

namespace fs = std::filesystem;

namespace {

/// Runs the members of one shard on a few threads.
class Members {
 public:
  Members(const Sweep& sweep, const SweepFolder& folder, const RunOptions& options, const Watch& watch)
      : sweep_(sweep), folder_(folder), options_(options), watch_(watch) {}

  RunStatus go(const Shard& shard) {
    for (std::size_t k = 0; k < sweep_.size(); ++k) {
      if (shard.holds(k)) todo_.push_back(k);
    }
    const auto threads = static_cast<std::size_t>(std::max(1, options_.threads));
    const std::size_t workers = std::max<std::size_t>(1, std::min(threads, todo_.size()));
    fractions_.assign(workers, 0.0);
    working_ = workers;
    {
      // a worker that finds no member left joins those that still run one: the last members do not leave cores idle
      const IdleThreads::Room room(workers - 1);
      std::vector<std::jthread> team;
      for (std::size_t w = 0; w < workers; ++w) {
        team.emplace_back([this, w, own = static_cast<int>(threads / workers)] { work(w, own); });
      }
    }
    if (interrupted_) {
      if (watch_.problem) watch_.problem("interrupted; everything so far is kept, --resume goes on");
      return RunStatus::interrupted;
    }
    return failed_ > 0 ? RunStatus::failed : RunStatus::completed;
  }

 private:
  void work(std::size_t worker, int threads) {
    for (std::size_t next = next_++; next < todo_.size() && !interrupted(); next = next_++) {
      run_member(todo_[next], worker, threads);
    }
    if (interrupted()) interrupted_ = true;
    --working_;
    IdleThreads& idle = IdleThreads::of_this_process();
    idle.wake();
    idle.lend([this] { return working_ == 0; });
  }

  [[nodiscard]] bool interrupted() const { return watch_.interrupted && watch_.interrupted(); }

  void run_member(std::size_t member, std::size_t worker, int threads) {
    const std::string& name = sweep_.name(member);
    std::string error;
    RunStatus status = RunStatus::failed;
    try {
      status = run_into_folder(member, worker, threads, error);
    } catch (const std::bad_alloc&) {
      error = "not enough memory";
    } catch (const std::exception& exception) {
      error = exception.what();
    }
    if (status == RunStatus::interrupted) {
      interrupted_ = true;
      return;
    }
    if (status == RunStatus::failed) note_failure(name, error);
    tell(name, status, error, worker);
  }

  RunStatus run_into_folder(std::size_t member, std::size_t worker, int threads, std::string& error) {
    const Experiment experiment = sweep_.experiment(member);
    const fs::path path = folder_.member(sweep_.name(member));
    std::error_code ignored;
    // a process that was killed while it made the folder left it without an experiment
    if (fs::exists(path, ignored) && !fs::exists(path / "experiment.toml", ignored)) fs::remove_all(path, ignored);
    const RunFolder folder = RunFolder::create(path, experiment, true);
    if (folder.whole()) return missed(folder.summary()) ? RunStatus::expectation_missed : RunStatus::completed;
    Watch own;
    own.interrupted = watch_.interrupted;
    own.problem = [&error](const std::string& text) { error += (error.empty() ? "" : "; ") + text; };
    if (watch_.progress) {
      own.progress = [this, worker](const std::string&, double fraction, double) { show(worker, fraction); };
    }
    return run(experiment, folder, {threads, options_.checkpoint_seconds, false}, own);
  }

  static bool missed(const nlohmann::ordered_json& summary) {
    const auto expectations = summary.value("expect", nlohmann::ordered_json::array());
    return std::any_of(expectations.begin(), expectations.end(), [](const auto& e) { return !e.value("met", false); });
  }

  /// The table is made from what lies in the folders, so a failure has to lie there too.
  void note_failure(const std::string& name, const std::string& error) const {
    const fs::path folder = folder_.member(name);
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || fs::exists(folder / "summary.json", ignored)) return;
    try {
      nlohmann::ordered_json summary = {{"version", version()}, {"status", "failed"}, {"failure", error}};
      write_whole(folder / "summary.json",
                  summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    } catch (const std::runtime_error&) {  // where nothing can be written the member will be missing
    }
  }

  void tell(const std::string& name, RunStatus status, const std::string& error, std::size_t worker) {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++done_;
    fractions_[worker] = 0.0;
    if (status == RunStatus::completed) {
      if (watch_.message) watch_.message(fmt::format("{}/{} {}: done", done_, todo_.size(), name));
      return;
    }
    ++failed_;
    if (watch_.problem) watch_.problem(fmt::format("{}: {}", name, error.empty() ? "expectation missed" : error));
  }

  void show(std::size_t worker, double fraction) {
    const std::lock_guard<std::mutex> guard(mutex_);
    fractions_[worker] = fraction;
    double sum = static_cast<double>(done_);
    for (const double one : fractions_) sum += one;
    const double whole = std::min(1.0, sum / static_cast<double>(todo_.size()));
    watch_.progress(fmt::format("{} members", todo_.size()), whole, sum);
  }

  const Sweep& sweep_;
  const SweepFolder& folder_;
  const RunOptions& options_;
  const Watch& watch_;
  std::vector<std::size_t> todo_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> interrupted_{false};
  std::atomic<std::size_t> working_{0};  ///< workers that may still have a member
  std::mutex mutex_;                     ///< of what follows
  std::vector<double> fractions_;
  std::size_t done_ = 0;
  std::size_t failed_ = 0;
};

}  // namespace

RunStatus run_members(const Sweep& sweep, const SweepFolder& folder, const Shard& shard, const RunOptions& options,
                      const Watch& watch) {
  return Members(sweep, folder, options, watch).go(shard);
}

}  // namespace iclflow
