#include "iclflow/regression/initial_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "iclflow/experiment/json_file.hpp"
#include "iclflow/random/stream.hpp"
#include "iclflow/reduction/projection.hpp"
#include "iclflow/spectral/closed_forms.hpp"

namespace iclflow {

namespace {

constexpr const char* attached_weights = "weights.json";

std::string shape_text(const Matrix& matrix) { return fmt::format("{} x {}", matrix.rows(), matrix.cols()); }

Matrix read_mu(const Section& section, std::string_view key, const Problem& problem) {
  Matrix mu = section.matrix(key);
  if (mu.rows() != problem.heads || mu.cols() != problem.tasks()) {
    section.fail(key, fmt::format("wrong shape ({})", shape_text(mu)),
                 fmt::format("heads x tasks = {} x {}", problem.heads, problem.tasks()));
  }
  return mu;
}

/// A number, H x I or H x d_x; returns H x d_x.
Matrix read_omega(const Section& section, std::string_view key, const Problem& problem) {
  if (section.is_number(key)) {
    return Matrix::Constant(problem.heads, problem.dimension(), section.number(key, Sign::any));
  }
  const Matrix omega = section.matrix(key);
  const bool blocks = omega.cols() == problem.tasks();
  if (omega.rows() != problem.heads || (!blocks && omega.cols() != problem.dimension())) {
    section.fail(key, fmt::format("wrong shape ({})", shape_text(omega)),
                 fmt::format("a number, heads x tasks = {0} x {1}, or heads x d_x = {0} x {2}", problem.heads,
                             problem.tasks(), problem.dimension()));
  }
  return blocks ? expand_blocks(problem, omega) : omega;
}

/// Shortest exact form of an H x d_x matrix: number, H x I, or in full.
std::string omega_text(const Problem& problem, const Matrix& omega) {
  if (!constant_on_blocks(problem, omega)) return TomlText::number_or_rows(omega);
  Matrix blocks(omega.rows(), problem.tasks());
  for (int i = 0; i < problem.tasks(); ++i) blocks.col(i) = omega.col(problem.block_begin(i));
  return TomlText::number_or_rows(blocks);
}

void check_layout(const Section& section, const Problem& problem, const WeightLayout& layout) {
  const auto refuse = [&](std::string_view what, auto found, auto wanted) {
    if (found != wanted) {
      section.fail("weights", fmt::format("its {} ({}) is not that of [problem]", what, found),
                   fmt::format("{}", wanted));
    }
  };
  const auto name = [](Parametrisation p) { return p == Parametrisation::split ? "split" : "merged"; };
  refuse("parametrisation", std::string(name(layout.parametrisation)), std::string(name(problem.parametrisation)));
  refuse("number of heads", layout.heads, problem.heads);
  refuse("covariate dimension", layout.dimension, problem.dimension());
  refuse("number of tasks", layout.tasks, problem.tasks());
  const double expected = problem.score_factor();
  if (std::abs(layout.score_factor - expected) > 4.0 * std::numeric_limits<double>::epsilon() * expected) {
    refuse("score_scale", layout.score_factor, expected);
  }
}

}  // namespace

Start::Start(const Problem& problem) : problem_(problem), spectral_(authors_start(problem)), preset_("authors") {}

Start::Start(const Problem& problem, const Section& section) : problem_(problem) {
  const bool preset = section.has("preset");
  const bool weights = section.has("weights");
  const bool numbers = section.has("mu") || section.has("omega");
  if (static_cast<int>(preset) + static_cast<int>(weights) + static_cast<int>(numbers) > 1) {
    section.fail(preset ? "preset" : "weights", "names a second start", "one of: mu and omega, preset, weights");
  }
  if (preset) {
    read_preset(section);
  } else if (weights) {
    read_weights_file(section);
  } else {
    read_numbers(section);
  }
  perturbation_ = section.number("perturbation", Sign::non_negative, 0.0);
  section.finish();
}

void Start::read_numbers(const Section& section) {
  const Matrix mu = read_mu(section, "mu", problem_);
  spectral_ = balanced_start(problem_, mu, read_omega(section, "omega", problem_));
  read_imbalance(section);
}

void Start::read_preset(const Section& section) {
  preset_ = section.choice("preset", {{"aligned", "authors", "random", "limit"}});
  if (preset_ == "aligned") {
    scale_ = section.number("scale", Sign::positive);
    own_ratio_ = section.number("own_ratio", Sign::positive, 4.0);
    spectral_ = aligned_start(problem_, scale_, own_ratio_);
    read_imbalance(section);
  } else if (preset_ == "random") {
    scale_ = section.number("scale", Sign::positive);
    seed_ = static_cast<std::uint64_t>(section.integer("seed", 0, std::numeric_limits<std::int64_t>::max(), 1));
    positive_ = section.boolean("positive", false);
    equal_omega_ = section.boolean("equal_omega", false);
    spectral_ = random_start(problem_, scale_, seed_, positive_, equal_omega_);
    read_imbalance(section);
  } else if (preset_ == "limit") {
    if (problem_.heads < problem_.tasks()) {
      section.fail("preset",
                   fmt::format("\"limit\" needs a head per task, and there are {} for {} tasks", problem_.heads,
                               problem_.tasks()),
                   "\"aligned\", \"authors\", \"random\"");
    }
    spectral_ = dedicated_start(problem_);
    read_imbalance(section);
  } else {
    spectral_ = authors_start(problem_);
  }
}

void Start::read_weights_file(const Section& section) {
  std::filesystem::path file = section.text("weights");
  if (file.empty()) section.fail("weights", "is empty", "a JSON file of weights");
  if (file.is_relative()) file = std::filesystem::path(section.file()).parent_path() / file;
  try {
    weights_text_ = read_text(file);
    named_ = std::make_shared<const NamedWeights>(read_weights(parse_json(weights_text_, file.string())));
  } catch (const InputError& error) {
    section.fail("weights", error.what());
  } catch (const JsonError& error) {
    section.fail("weights", fmt::format("{}: {}: {}", file.string(), error.pointer(), error.what()));
  }
  check_layout(section, problem_, named_->layout);
  if (!named_->values.allFinite()) section.fail("weights", "holds a number that is not finite", "finite numbers");
  spectral_ = project_start(problem_, named_->layout, rotations(problem_), named_->values);
}

void Start::read_imbalance(const Section& section) {
  if (problem_.parametrisation == Parametrisation::merged) {
    for (const char* key : {"imbalance", "inert"}) {
      if (section.has(key)) {
        section.fail(key, "belongs to the split parametrisation only", fmt::format("no {}", key));
      }
    }
    return;
  }
  if (const auto parts =
          section.kind("imbalance") == Value::Kind::table ? section.find_section("imbalance") : std::nullopt) {
    if (parts->is_number("mu")) {
      spectral_.imbalance_mu.setConstant(parts->number("mu", Sign::any));
    } else if (parts->has("mu")) {
      spectral_.imbalance_mu = read_mu(*parts, "mu", problem_);
    }
    if (parts->has("omega")) spectral_.imbalance_omega = read_omega(*parts, "omega", problem_);
    parts->finish();
  } else {
    const double both = section.number("imbalance", Sign::any, 0.0);
    spectral_.imbalance_mu.setConstant(both);
    spectral_.imbalance_omega.setConstant(both);
  }
  spectral_.inert = section.number("inert", Sign::any, 0.0);
}

WeightLayout Start::layout() const { return named_ ? named_->layout : WeightLayout::of(problem_); }

Eigen::VectorXd Start::weights() const {
  return named_ ? named_->values : embed(problem_, rotations(problem_), spectral_);
}

Eigen::VectorXd Start::perturbed_weights(std::uint64_t seed) const {
  Eigen::VectorXd all = weights();
  if (perturbation_ == 0.0) return all;
  NormalStream normal({seed, Stream::initial, 1, 0});
  for (double& weight : all) weight += perturbation_ * normal();
  return all;
}

void Start::resolve(TomlText& text) const {
  text.table("initial");
  text.put("perturbation", perturbation_);
  if (named_) {
    text.put("weights", attached_weights);
    return;
  }
  if (preset_.empty()) {
    text.put("mu", spectral_.mu);
    text.raw("omega", omega_text(problem_, spectral_.omega));
  } else {
    text.put("preset", preset_);
  }
  if (preset_ == "aligned" || preset_ == "random") text.put("scale", scale_);
  if (preset_ == "aligned") text.put("own_ratio", own_ratio_);
  if (preset_ == "random") {
    text.put("seed", seed_);
    text.put("positive", positive_);
    text.put("equal_omega", equal_omega_);
  }
  if (preset_ != "authors" && problem_.parametrisation == Parametrisation::split) {
    text.raw("imbalance", fmt::format("{{ mu = {}, omega = {} }}", TomlText::number_or_rows(spectral_.imbalance_mu),
                                      omega_text(problem_, spectral_.imbalance_omega)));
    text.put("inert", spectral_.inert);
  }
}

std::vector<Attachment> Start::attachments() const {
  if (!named_) return {};
  return {{attached_weights, weights_text_}};
}

}  // namespace iclflow
