#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/integrate/control.hpp"

namespace iclflow {

/// One [[dynamics]] as the runner sees it: one member per seed, a single one when nothing is random.
struct DynamicsPart {
  std::string name;
  std::string kind;
  std::string variant;                 ///< closure or estimator
  std::vector<std::uint64_t> seeds{};  ///< empty when nothing is random
  bool needs_time = true;              ///< false for kinds that do not move
  std::string table{};                 ///< of the experiment file that holds its seeds; empty: dynamics.<name>

  [[nodiscard]] std::size_t members() const { return seeds.empty() ? 1 : seeds.size(); }
};

/// A file that belongs to the experiment and is copied into the run folder.
struct Attachment {
  std::string name;  ///< in the run folder
  std::string contents;
};

/// Where and what to draw.
struct FigureRequest {
  std::filesystem::path folder;  ///< of the figures
  std::string title;
  std::vector<std::string> figures;  ///< names of Study::figures()
};

/// A figure of a run, drawn as folder/kind.{svg,pdf,png} or not.
struct DrawnFigure {
  std::string kind;
  std::string caption;
  std::string problem;  ///< one sentence on why there is none; empty when it was drawn
};

/// How an evaluation of finished dynamics is watched. Empty functions are allowed.
struct EvaluationControl {
  int threads = 1;           ///< never changes a bit of the result
  bool theory_only = false;  ///< leave out what is sampled token by token
  std::function<bool()> interrupted;
  std::function<void(double fraction)> progress;
  std::function<void(const nlohmann::ordered_json& keys)> keep;  ///< after every piece; the callee limits its own rate
  nlohmann::ordered_json kept;  ///< what an earlier attempt kept last; null when there is none
};

/// Keys of summary.json that need finished dynamics; whole = false when interrupted before their end.
struct Evaluated {
  nlohmann::ordered_json keys = nlohmann::ordered_json::object();
  bool whole = true;
};

/// What a System made of its part of one experiment file: validated, and able to predict, evolve, summarise and draw.
class Study {
 public:
  virtual ~Study() = default;

  [[nodiscard]] virtual const std::vector<DynamicsPart>& dynamics() const = 0;
  /// Numbers that one sample of one member of dynamics k records; bounds memory before anything runs.
  [[nodiscard]] virtual std::size_t values_per_sample(std::size_t k) const = 0;
  /// Throws std::invalid_argument with one sentence when dynamics k cannot be sampled at these times.
  virtual void check_times(std::size_t k, const std::vector<double>& times) const = 0;
  /// What an event may watch ("loss", ...), as text for messages; and whether `quantity` is one.
  [[nodiscard]] virtual std::string quantities() const = 0;
  [[nodiscard]] virtual bool has_quantity(const std::string& quantity) const = 0;
  /// Figures that can be drawn of these dynamics, in order; [report] chooses among them, all by default.
  [[nodiscard]] virtual std::vector<std::string_view> figures() const = 0;
  /// Figures that are drawn only when [report] names them.
  [[nodiscard]] virtual std::vector<std::string_view> further_figures() const { return {}; }
  /// Keys that [expect] may bound from above, and the numbers a finished run has for one of them.
  [[nodiscard]] virtual std::vector<std::string_view> expectations() const = 0;

  /// Appends this system's tables to a resolved experiment file, every default written out.
  virtual void resolve(TomlText& text) const = 0;
  [[nodiscard]] virtual std::vector<Attachment> attachments() const { return {}; }

  /// `problem` and `prediction` of summary.json, and the prediction as text for a reader.
  [[nodiscard]] virtual nlohmann::ordered_json problem() const = 0;
  [[nodiscard]] virtual nlohmann::ordered_json predict() const = 0;
  [[nodiscard]] virtual std::string describe_prediction() const = 0;
  /// True where predict() samples: a run then measures the same in evaluate_final() and its summary has no
  /// `prediction`.
  [[nodiscard]] virtual bool predicts_by_sampling() const { return false; }

  /// Searches for the best weights of the problem: `optimum` of summary.json, and the same as text for a reader.
  [[nodiscard]] virtual nlohmann::ordered_json optimum(int threads) const = 0;
  [[nodiscard]] virtual std::string describe_optimum(const nlohmann::ordered_json& optimum) const = 0;

  /// Evolves one member of dynamics k. Events that it meets are in the outcome's trajectory.
  [[nodiscard]] virtual Outcome evolve(std::size_t k, std::size_t member, const std::vector<double>& times,
                                       const std::vector<Event>& events, int threads, const Control& control) const = 0;
  /// Evaluates the final states, once all dynamics are whole.
  [[nodiscard]] virtual Evaluated evaluate_final(const std::vector<DynamicsResult>& results,
                                                 const EvaluationControl& control) const {
    static_cast<void>(results);
    static_cast<void>(control);
    return {};
  }
  /// The system's own keys of summary.json (dynamics, comparison, ...), from whatever results exist.
  [[nodiscard]] virtual nlohmann::ordered_json summarise(const std::vector<DynamicsResult>& results) const = 0;
  /// Draws what the results allow. A figure that cannot be drawn says why; nothing is thrown for it.
  [[nodiscard]] virtual std::vector<DrawnFigure> draw(const std::vector<DynamicsResult>& results,
                                                      const nlohmann::ordered_json& summary,
                                                      const FigureRequest& request) const = 0;
};

/// An entry of `iclflow list`.
struct CatalogueEntry {
  std::string category;  ///< "closures", "steppers", ...
  std::string name;
  std::string description;  ///< one line
  bool planned = false;
};

/// A kind of experiment.
class System {
 public:
  virtual ~System() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::string_view description() const = 0;
  /// Reads this system's tables of the root section. Throws InputError.
  [[nodiscard]] virtual std::unique_ptr<Study> parse(const Section& root) const = 0;
  [[nodiscard]] virtual std::vector<CatalogueEntry> catalogue() const = 0;
};

}  // namespace iclflow
