#include "training_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "iclflow/experiment/drawn_figure.hpp"
#include "iclflow/mesa/compression.hpp"
#include "iclflow/mesa/few_shot.hpp"
#include "iclflow/mesa/probes.hpp"
#include "iclflow/plots/sequence_figures.hpp"
#include "iclflow/plots/weights_figure.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

const Json& find(const Json& json, std::initializer_list<const char*> keys) {
  static const Json nothing = nullptr;
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return nothing;
    at = &at->at(key);
  }
  return *at;
}

std::string preconditioned_name(const Json& entry) {
  const int steps = entry.at("steps").get<int>();
  return fmt::format("preconditioned, {} step{}", steps, steps == 1 ? "" : "s");
}

/// The ridge predictor of the smallest loss, null when there is none.
const Json& best_ridge(const Json& baselines) {
  static const Json nothing = nullptr;
  const Json* best = &nothing;
  for (const Json& entry : baselines.at("ridge")) {
    if (best->is_null() || entry.at("loss").get<double>() < best->at("loss").get<double>()) best = &entry;
  }
  return *best;
}

std::string ridge_name(const Json& entry) { return fmt::format("ridge, λ = {:g}", entry.at("lambda").get<double>()); }

/// Values at 1, 2, ...: loss against context length.
Curve by_position(const std::string& label, const Json& values, const Json& errors) {
  Curve curve{label, {}, {}, {}};
  for (std::size_t t = 0; t < values.size(); ++t) {
    curve.times.push_back(static_cast<double>(t + 1));
    curve.values.push_back(values[t].get<double>());
    if (errors.is_array() && errors[t].is_number()) curve.standard_error.push_back(errors[t].get<double>());
  }
  return curve;
}

/// Array `name`_loss over the recorded steps.
Curve along_training(const std::string& name, const Json& along) {
  Curve curve{name, {}, {}, {}};
  for (std::size_t k = 0; k < along.at("step").size(); ++k) {
    curve.times.push_back(along.at("step")[k].get<double>());
    curve.values.push_back(along.at(name + "_loss")[k].get<double>());
    const Json& error = along.at(name + "_loss_standard_error")[k];
    if (error.is_number()) curve.standard_error.push_back(error.get<double>());
  }
  return curve;
}

TrainingFigure training_figure(const TrainingSource& source) {
  TrainingFigure figure;
  figure.title = source.title;
  for (const DynamicsResult& result : source.results) {
    for (std::size_t m = 0; m < result.members.size(); ++m) {
      figure.seeds.push_back(
          {fmt::format("seed {}", result.seeds.at(m)), result.members[m].times, result.members[m]["loss"].values, {}});
    }
  }
  const Json& compressed = find(source.summary, {"compressed"});
  if (compressed.is_object()) {
    if (compressed.contains("along")) {
      figure.compressed.push_back(along_training("compressed", compressed.at("along")));
      figure.interpolated.push_back(along_training("interpolated", compressed.at("along")));
    } else {
      figure.levels.push_back({"compressed", compressed.at("loss").get<double>()});
    }
  }
  const Json& zero = find(source.summary, {"final", "evaluation_zero_loss"});
  if (zero.is_number()) figure.levels.push_back({"zero", zero.get<double>()});
  const Json& baselines = find(source.summary, {"baselines"});
  if (!baselines.is_object()) return figure;
  figure.levels.push_back({"gradient step", baselines.at("gradient_step").at("loss").get<double>()});
  for (const Json& entry : baselines.at("preconditioned")) {
    figure.levels.push_back({preconditioned_name(entry), entry.at("loss").get<double>()});
  }
  if (const Json& ridge = best_ridge(baselines); ridge.is_object()) {
    figure.levels.push_back({ridge_name(ridge), ridge.at("loss").get<double>()});
  }
  return figure;
}

PositionsFigure positions_figure(const TrainingSource& source) {
  PositionsFigure figure;
  figure.title = source.title;
  const Json& positions = find(source.summary, {"final", "positions"});
  if (positions.is_object()) {
    figure.models.push_back(by_position("trained", positions.at("loss"), positions.at("loss_standard_error")));
  }
  const Json& baselines = find(source.summary, {"baselines"});
  if (!baselines.is_object()) return figure;
  figure.baselines.push_back(by_position("gradient step", baselines.at("gradient_step").at("positions"), nullptr));
  const Json& steps =
      baselines.at("preconditioned");  // the first and the last: more lines than four cannot be told apart
  for (std::size_t k = 0; k < steps.size(); k += std::max<std::size_t>(steps.size() - 1, 1)) {
    figure.baselines.push_back(by_position(preconditioned_name(steps[k]), steps[k].at("positions"), nullptr));
  }
  if (const Json& ridge = best_ridge(baselines); ridge.is_object()) {
    figure.baselines.push_back(by_position(ridge_name(ridge), ridge.at("positions"), nullptr));
  }
  return figure;
}

/// Entries row by row.
std::vector<double> entries(const Eigen::MatrixXd& matrix) {
  std::vector<double> values;
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) values.push_back(matrix(i, j));
  }
  return values;
}

WeightMap weight_map(const std::string& label, const HeadProducts& products) {
  return {label, entries(products.key_query), entries(products.output_value)};
}

/// Products of the first seed's weights at the end: the heads' sum, and each head; of deep stacks the sums of all
/// layers side by side, since a row of maps for every layer would be longer than a page.
WeightsFigure weights_figure(const TrainingSource& source, const Eigen::VectorXd& parameters) {
  constexpr std::size_t most_layers_by_head = 3;
  const StackShape& shape = source.shape;
  const StackProducts products = head_products(shape, parameters);
  const bool deep = products.size() > most_layers_by_head;
  WeightLayer blank;
  for (const char* symbol : {"0", "{/:Italic s_t}", "{/:Italic s_t}", "{/:Italic s_{t−1}}"}) {
    blank.key_query_blocks.push_back({symbol, shape.state_dimension});
    blank.output_value_blocks.push_back({symbol, shape.state_dimension});
  }
  WeightsFigure figure;
  figure.title = source.title;
  for (std::size_t l = 0; l < products.size(); ++l) {
    const std::string name = fmt::format("layer {}", l + 1);
    if (l == 0 || !deep) figure.layers.push_back(blank);
    WeightLayer& layer = figure.layers.back();
    if (!deep) layer.name = name;
    HeadProducts sum = products[l].front();
    for (std::size_t h = 1; h < products[l].size(); ++h) {
      sum.key_query += products[l][h].key_query;
      sum.output_value += products[l][h].output_value;
    }
    layer.maps.push_back(weight_map(deep ? name + ", sum" : "sum over heads", sum));
    for (std::size_t h = 0; !deep && h < products[l].size(); ++h) {
      layer.maps.push_back(weight_map(fmt::format("head {}", h), products[l][h]));
    }
  }
  return figure;
}

/// Weights at the end of the first seed, from wherever they are; empty when nowhere.
Eigen::VectorXd last_parameters(const std::vector<DynamicsResult>& results) {
  if (results.empty() || results.front().members.empty()) return {};
  const DynamicsResult& result = results.front();
  if (!result.final_states.empty()) return result.final_states.front();
  const Trajectory& first = result.members.front();
  if (!first.has("parameters") || first.samples() == 0) return {};
  const std::span<const double> last = first["parameters"].last();
  return Eigen::Map<const Eigen::VectorXd>(last.data(), static_cast<Eigen::Index>(last.size()));
}

}  // namespace

DrawnFigure draw_training_figure(const std::string& kind, const TrainingSource& source,
                                 const std::filesystem::path& folder) {
  if (source.results.empty() || source.results.front().members.empty()) return {kind, "", "there is no sample to draw"};
  if (kind == "training") {
    if (source.results.front().members.front().samples() < 2) {
      return {kind, "", "there are fewer than two samples to draw"};
    }
    return drawn_figure(kind, training_figure(source), folder);
  }
  if (kind == "positions") {
    const PositionsFigure figure = positions_figure(source);
    if (figure.models.empty()) return {kind, "", "the weights have not been evaluated yet"};
    return drawn_figure(kind, figure, folder);
  }
  if (kind == "weights") {
    const Eigen::VectorXd parameters = last_parameters(source.results);
    if (parameters.size() != StackLayout::of(source.shape).size) {
      return {kind, "", "the weights were not kept (training.keep_parameters = false)"};
    }
    return drawn_figure(kind, weights_figure(source, parameters), folder);
  }
  if (kind == "probes") {
    const Json& found = find(source.summary, {"probes"});
    if (!found.is_object()) return {kind, "", "the weights have not been probed yet"};
    return drawn_figure(kind, probes_figure(found, source.title), folder);
  }
  if (kind == "few-shot") {
    const Json& found = find(source.summary, {"few_shot"});
    if (!found.is_object()) return {kind, "", "few-shot pairs have not been measured yet"};
    return drawn_figure(kind, few_shot_figure(found, source.title), folder);
  }
  throw std::invalid_argument("no figure is called '" + kind + "'");
}

}  // namespace iclflow
