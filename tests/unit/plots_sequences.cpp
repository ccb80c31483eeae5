#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "iclflow/plots/sequence_figures.hpp"
#include "iclflow/plots/weights_figure.hpp"

using namespace iclflow;
namespace fs = std::filesystem;

namespace {

/// Where the figures go; kept when ICLFLOW_KEEP_FIGURES names a folder, to be looked at.
class Folder {
 public:
  Folder() {
    if (const char* kept = std::getenv("ICLFLOW_KEEP_FIGURES")) {
      path_ = kept;
      kept_ = true;
      return;
    }
    std::string name = (fs::temp_directory_path() / "iclflow-sequences-XXXXXX").string();
    BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    if (!kept_) fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  /// The svg of the figure as text, once all three formats are there.
  template <typename Figure>
  std::string drawn(const Figure& figure, const std::string& stem) const {
    draw(figure, {path_, stem});
    for (const char* format : {".pdf", ".png"}) BOOST_TEST(fs::exists(path_ / (stem + format)));
    BOOST_TEST(caption(figure).size() > 60U);
    std::ifstream in(path_ / (stem + ".svg"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path path_;
  bool kept_ = false;
};

Curve made_up(const std::string& label, const std::vector<double>& at, double start, double end, double rate,
              double error = 0.0) {
  Curve curve{label, at, {}, {}};
  for (const double x : at) {
    curve.values.push_back(end + (start - end) * std::exp(-rate * x));
    if (error > 0.0) curve.standard_error.push_back(error * curve.values.back());
  }
  return curve;
}

std::vector<double> range(double first, double last, double step) {
  std::vector<double> values;
  for (double x = first; x <= last + 1e-9; x += step) values.push_back(x);
  return values;
}

TrainingFigure training() {
  TrainingFigure figure;
  figure.title = "Two linear layers `date`";
  const std::vector<double> steps = range(0.0, 2400.0, 50.0);
  for (const double rate : {0.0028, 0.003, 0.0033}) figure.seeds.push_back(made_up("trained", steps, 1.68, 0.42, rate));
  figure.compressed = {made_up("compressed", steps, 1.68, 0.415, 0.003, 0.02)};
  figure.interpolated = {made_up("interpolated", steps, 1.68, 0.43, 0.0031)};
  figure.published = {{"published", {200.0, 400.0, 800.0, 2400.0}, {1.669, 0.841, 0.452, 0.431}, {}}};
  figure.levels = {{"prediction 0", 1.68},     {"gradient step", 0.904},    {"ridge λ = 1", 0.247},
                   {"1 step precond.", 0.383}, {"2 steps precond.", 0.295}, {"6 steps precond.", 0.223}};
  figure.zero_loss = 1.68;
  return figure;
}

PositionsFigure positions() {
  PositionsFigure figure;
  figure.title = "Loss by context length";
  const std::vector<double> at = range(1.0, 50.0, 1.0);
  figure.models = {made_up("1 layer", at, 1.7, 0.6, 0.1, 0.02), made_up("2 layers", at, 1.7, 0.2, 0.12, 0.02),
                   made_up("mesa", at, 1.7, 0.002, 0.3, 0.02)};
  figure.baselines = {made_up("gradient step", at, 1.7, 0.62, 0.1), made_up("ridge λ = 1", at, 1.7, 0.001, 0.31)};
  return figure;
}

WeightsFigure weights(int layers, int heads) {
  WeightsFigure figure;
  figure.title = "One linear layer and the constructed gradient step";
  constexpr int n = 10;
  const std::vector<WeightBlock> blocks{
      {"{/:Italic f_t}", n}, {"{/:Italic s_t}", n}, {"{/:Italic s_t}", n}, {"{/:Italic s_{t−1}}", n}};
  for (int layer = 0; layer < layers; ++layer) {
    WeightLayer made{"layer " + std::to_string(layer + 1), blocks, blocks, {}};
    for (int head = 0; head <= heads; ++head) {
      WeightMap map{head == 0 ? "sum of heads" : "head " + std::to_string(head), std::vector<double>(1600, 0.0),
                    std::vector<double>(1600, 0.0)};
      for (std::size_t i = 0; i < 1600; ++i) {
        map.key_query[i] = 0.004 * std::sin(0.7 * static_cast<double>(i * i % 97));
        map.output_value[i] = 0.004 * std::cos(0.9 * static_cast<double>(i * i % 89));
      }
      for (std::size_t i = 0; i < n; ++i) {
        map.key_query[(30 + i) * 40 + 20 + i] = head == 1 ? -0.1 : 0.15;
        map.output_value[i * 40 + 20 + i] = head == 1 ? -0.2 : 0.25;
      }
      made.maps.push_back(map);
    }
    figure.layers.push_back(made);
  }
  return figure;
}

ProbesFigure probes() {
  ProbesFigure figure;
  figure.title = "Linear probes of the residual stream";
  const std::vector<double> layers = range(0.0, 6.0, 1.0);
  for (const char* name : {"next state", "preconditioned input"}) {
    ProbePanel panel{name, {}};
    for (const double t : {5.0, 10.0, 20.0, 49.0}) {
      panel.curves.push_back(made_up("t = " + std::to_string(static_cast<int>(t)), layers, 1.0, 0.1 / t, 0.1 * t));
    }
    figure.by_layer.push_back(panel);
  }
  const std::vector<double> at = range(36.0, 50.0, 1.0);
  Curve error{"", at, {}, {}};
  Curve sensitivity{"", at, {}, {}};
  for (const double t : at) {
    error.values.push_back(t > 48.5 ? 1e-3 : 0.9);
    sensitivity.values.push_back(t > 48.5 ? 1.1 : 0.02 + 0.001 * (t - 36.0));
  }
  figure.past_error = {"past tokens after layer 1", {error}};
  figure.past_sensitivity = {"sensitivity of layer 1", {sensitivity}};
  return figure;
}

FewShotFigure few_shot() {
  FewShotFigure figure;
  figure.title = "Few-shot regression without retraining";
  const std::vector<double> at = range(0.0, 19.0, 1.0);
  FewShotPanel panel{"one task",
                     {made_up("TF", at, 5.0, 1.2, 0.15, 0.02), made_up("TF + EOS", at, 5.0, 0.8, 0.2, 0.02),
                      made_up("TF + EOS + P", at, 5.0, 0.3, 0.25, 0.02)},
                     {made_up("least squares", at, 5.0, 0.01, 0.4), made_up("with spurious pairs", at, 5.0, 1.5, 0.1)}};
  figure.panels = {panel, panel};
  figure.panels[1].name = "two tasks in a row";
  figure.panels[1].second_task_at = 10.0;
  return figure;
}

void shows(const std::string& svg, const std::vector<const char*>& texts) {
  for (const char* text : texts) BOOST_TEST(svg.find(text) != std::string::npos, text);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plots_sequences)

BOOST_AUTO_TEST_CASE(every_line_and_level_is_named) {
  const Folder folder;
  shows(folder.drawn(training(), "training"),
        {"`date`", "trained, each seed", "compressed", "interpolated", "published", "ridge λ = 1", "6 steps precond."});
  shows(folder.drawn(positions(), "positions"), {"2 layers", "mesa", "gradient step", "context length"});
  shows(folder.drawn(probes(), "probes"), {"next state", "preconditioned input", "t = 49", "sensitivity of layer 1"});
  shows(folder.drawn(few_shot(), "few-shot"), {"TF + EOS + P", "with spurious pairs", "two tasks in a row"});
  shows(folder.drawn(weights(1, 2), "weights"), {"sum of heads", "head 2", "t−1"});
  shows(folder.drawn(weights(2, 4), "weights-deep"), {"layer 2", "head 4"});
}

BOOST_AUTO_TEST_CASE(figures_without_optional_parts_are_drawn) {
  const Folder folder;
  TrainingFigure bare;
  bare.seeds = {{"seed 1", {0.0, 1.0}, {1.0, NAN}, {}}};
  const std::string svg = folder.drawn(bare, "bare-training");
  BOOST_TEST(svg.find("seed 1") != std::string::npos);
  BOOST_TEST(svg.find("prediction 0") == std::string::npos);
  ProbesFigure layers_only = probes();
  layers_only.past_error.curves.clear();
  layers_only.past_sensitivity.curves.clear();
  BOOST_TEST(folder.drawn(layers_only, "bare-probes").find("sensitivity") == std::string::npos);
  WeightsFigure zero = weights(1, 1);
  for (double& value : zero.layers[0].maps[0].key_query) value = 0.0;
  static_cast<void>(folder.drawn(zero, "bare-weights"));
}

BOOST_AUTO_TEST_CASE(arrays_that_do_not_fit_are_refused) {
  const FigureFile nowhere{fs::temp_directory_path(), "x"};
  WeightsFigure map = weights(1, 1);
  map.layers[0].maps[1].output_value.pop_back();
  BOOST_CHECK_THROW(draw(map, nowhere), std::invalid_argument);
  BOOST_CHECK_THROW(draw(WeightsFigure{}, nowhere), std::invalid_argument);
  PositionsFigure curve = positions();
  curve.models[0].values.pop_back();
  BOOST_CHECK_THROW(draw(curve, nowhere), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
