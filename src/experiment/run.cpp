#include "iclflow/experiment/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "iclflow/experiment/checkpoint_file.hpp"
#include "iclflow/experiment/figures.hpp"
#include "iclflow/trajectory/netcdf.hpp"

namespace iclflow {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One run from its first dynamics to its files.
class Run {
 public:
  Run(const Experiment& experiment, const RunFolder& folder, const RunOptions& options, const Watch& watch)
      : experiment_(experiment),
        folder_(folder),
        options_(options),
        watch_(watch),
        log_(folder.log_file()),
        print_(fingerprint(experiment.resolved())) {}

  RunStatus go() {
    std::error_code error;  // what cannot be made shows when the first checkpoint is written
    std::filesystem::create_directories(folder_.path() / "checkpoints", error);
    log_.information(fmt::format("iclflow {}: \"{}\", {} threads", version(), experiment_.title, options_.threads));
    const std::size_t count = experiment_.study->dynamics().size();
    for (std::size_t k = 0; k < count && stopped_ == Status::completed; ++k) evolve_dynamics(k);
    if (stopped_ == Status::completed) evaluate_final();
    return finish();
  }

 private:
  void say(const std::string& text) {
    log_.information(text);
    if (watch_.message) watch_.message(text);
  }
  void complain(const std::string& text) {
    log_.problem(text);
    if (watch_.problem) watch_.problem(text);
  }
  [[nodiscard]] bool interrupted() const { return watch_.interrupted && watch_.interrupted(); }

  void evolve_dynamics(std::size_t k) {
    const DynamicsPart& part = experiment_.study->dynamics()[k];
    DynamicsResult result;
    result.name = part.name;
    result.kind = part.kind;
    result.variant = part.variant;
    for (std::size_t member = 0; member < part.members() && stopped_ == Status::completed; ++member) {
      evolve_member(k, member, result);
    }
    result.interrupted = stopped_ == Status::interrupted;
    if (stopped_ == Status::completed) {
      say(fmt::format("{}: done, {} evaluations, {:.3g} s", part.name, result.evaluations, result.wall_seconds));
    }
    if (!result.members.empty()) results_.push_back(std::move(result));
  }

  void evolve_member(std::size_t k, std::size_t member, DynamicsResult& result) {
    const DynamicsPart& part = experiment_.study->dynamics()[k];
    const std::filesystem::path file = folder_.checkpoint_file(part.name, member);
    std::optional<SavedMember> saved = load(file);
    if (!(saved && saved->done)) {
      if (interrupted()) {
        stopped_ = Status::interrupted;
        if (!saved) return;
      } else {
        saved = advance(k, member, file, std::move(saved), result.failure);
      }
    }
    if (saved->checkpoint.trajectory.samples() == 0) return;
    if (!part.seeds.empty()) result.seeds.push_back(part.seeds[member]);
    result.evaluations += saved->checkpoint.evaluations;
    result.wall_seconds += saved->wall_seconds;
    result.members.push_back(std::move(saved->checkpoint.trajectory));
    result.final_states.push_back(std::move(saved->checkpoint.state));
  }

  /// A damaged checkpoint costs time, not the run.
  std::optional<SavedMember> load(const std::filesystem::path& file) {
    try {
      return load_member(file, print_);
    } catch (const std::runtime_error& error) {
      complain(fmt::format("{}; this part starts again", error.what()));
      return std::nullopt;
    }
  }

  /// A checkpoint that cannot be written costs time if the run is stopped, not the run.
  void save(const std::filesystem::path& file, const SavedMember& member) {
    try {
      save_member(file, print_, member);
    } catch (const std::runtime_error& error) {
      if (!std::exchange(unsaved_, true)) complain(fmt::format("{}; the run goes on without", error.what()));
    }
  }

  SavedMember advance(std::size_t k, std::size_t member, const std::filesystem::path& file,
                      std::optional<SavedMember> saved, std::string& failure) {
    const DynamicsPart& part = experiment_.study->dynamics()[k];
    const double spent = saved ? saved->wall_seconds : 0.0;
    if (saved) log_.information(fmt::format("{}: goes on at t = {}", part.name, saved->checkpoint.time));
    const auto start = Clock::now();
    auto last_save = start;
    Control control;
    control.interrupted = watch_.interrupted;
    if (watch_.progress) {
      const std::string label =
          part.seeds.empty() ? part.name : fmt::format("{} seed {}", part.name, part.seeds[member]);
      const double final_time = experiment_.times().back();
      control.progress = [=, this](double fraction) {
        watch_.progress(label, (static_cast<double>(member) + fraction) / static_cast<double>(part.members()),
                        fraction * final_time);
      };
    }
    control.checkpoint = [&](const Checkpoint& checkpoint) {
      if (seconds_since(last_save) < options_.checkpoint_seconds) return;
      last_save = Clock::now();
      save(file, {false, checkpoint, spent + seconds_since(start)});
    };
    if (saved) control.resume = std::move(saved->checkpoint);
    Outcome outcome =
        experiment_.study->evolve(k, member, experiment_.times(), experiment_.events, options_.threads, control);
    SavedMember now{outcome.status == Status::completed, std::move(outcome.last), spent + seconds_since(start)};
    now.checkpoint.trajectory = std::move(outcome.trajectory);
    now.checkpoint.evaluations = outcome.evaluations;
    stopped_ = outcome.status;
    if (stopped_ == Status::failed) {
      failure = outcome.message;
      complain(fmt::format("{}: {}", part.name, outcome.message));
    } else {
      save(file, now);
    }
    return now;
  }

  [[nodiscard]] std::filesystem::path evaluated_file() const {
    return folder_.path() / "checkpoints" / "evaluated.json";
  }

  void evaluate_final() {
    EvaluationControl control;
    control.threads = options_.threads;
    control.theory_only = experiment_.theory_only;
    control.interrupted = watch_.interrupted;
    control.kept = load_evaluated();
    if (watch_.progress) {
      control.progress = [this](double fraction) { watch_.progress("evaluation", fraction, 0.0); };
    }
    auto last_save = Clock::now();
    control.keep = [&](const nlohmann::ordered_json& keys) {
      if (seconds_since(last_save) < options_.checkpoint_seconds) return;
      last_save = Clock::now();
      save_evaluated(keys);
    };
    const auto start = Clock::now();
    evaluated_ = experiment_.study->evaluate_final(results_, control);
    if (evaluated_.keys.empty()) return;
    save_evaluated(evaluated_.keys);
    if (evaluated_.whole) {
      say(fmt::format("evaluation: done, {:.3g} s", seconds_since(start)));
    } else {
      stopped_ = Status::interrupted;
    }
  }

  void save_evaluated(const nlohmann::ordered_json& keys) {
    try {
      write_whole(evaluated_file(), nlohmann::ordered_json{{"experiment", print_}, {"keys", keys}}.dump());
    } catch (const std::runtime_error& error) {
      if (!std::exchange(unsaved_, true)) complain(fmt::format("{}; the run goes on without", error.what()));
    }
  }

  /// What an earlier attempt evaluated; null when there is nothing or it is damaged, which costs time only.
  [[nodiscard]] nlohmann::ordered_json load_evaluated() const {
    std::ifstream in(evaluated_file());
    const auto saved = nlohmann::ordered_json::parse(in, nullptr, false);
    const bool ours = saved.is_object() && saved.value("experiment", nlohmann::ordered_json()) == print_;
    return ours ? saved.value("keys", nlohmann::ordered_json()) : nlohmann::ordered_json();
  }

  RunStatus finish() {
    const bool kept = keep("trajectory.nc", [this] {
      write_netcdf(
          folder_.trajectory_file(), results_,
          {{"title", experiment_.title}, {"version", std::string(version())}, {"experiment", experiment_.resolved()}});
    });
    nlohmann::ordered_json summary;
    const bool told = keep("summary.json", [&] {
      summary = make_summary(experiment_, results_, evaluated_);
      write_whole(folder_.summary_file(), summary.dump(2) + "\n");
    });
    const bool shown = !options_.report || (told && keep("report.html", [&] {
                                              for (const std::string& text :
                                                   write_figures_and_report(experiment_, folder_, results_, summary))
                                                complain(text);
                                            }));
    if (stopped_ == Status::interrupted) {
      complain(kept && told ? "interrupted; everything so far is kept, --resume goes on" : "interrupted");
      return RunStatus::interrupted;
    }
    if (stopped_ == Status::failed || !kept || !told) return RunStatus::failed;
    folder_.remove_checkpoints();
    const RunStatus status = report_expectations(summary);
    return shown ? status : RunStatus::failed;
  }

  /// Writes one file; one that cannot be written does not take the others with it.
  template <typename Write>
  bool keep(const std::string& name, Write write) {
    try {
      write();
      return true;
    } catch (const std::exception& error) {
      complain(fmt::format("{} is missing: {}", name, error.what()));
      return false;
    }
  }

  RunStatus report_expectations(const nlohmann::ordered_json& summary) {
    bool met = true;
    for (const auto& expectation : summary.at("expect")) {
      if (expectation.at("met").get<bool>()) continue;
      met = false;
      complain(fmt::format("expected {} of at most {}, got {}", expectation.at("key").get<std::string>(),
                           expectation.at("allowed").dump(), expectation.at("value").dump()));
    }
    for (const std::string& sentence : missed_checks(summary)) {
      met = false;
      complain(sentence);
    }
    return met ? RunStatus::completed : RunStatus::expectation_missed;
  }

  const Experiment& experiment_;
  const RunFolder& folder_;
  const RunOptions& options_;
  const Watch& watch_;
  RunLog log_;
  std::uint64_t print_;
  std::vector<DynamicsResult> results_;
  Evaluated evaluated_;
  Status stopped_ = Status::completed;
  bool unsaved_ = false;  ///< some checkpoint could not be written
};

}  // namespace

RunStatus run(const Experiment& experiment, const RunFolder& folder, const RunOptions& options, const Watch& watch) {
  return Run(experiment, folder, options, watch).go();
}

}  // namespace iclflow
