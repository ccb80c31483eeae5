#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "iclflow/plots/evaluation_figure.hpp"

using namespace iclflow;
namespace fs = std::filesystem;

namespace {

EvaluationFigure two_laws() {
  EvaluationFigure figure;
  figure.title = "A title with 'quotes' and `date`";
  figure.training_length = 20.0;
  const EvaluationCurve weights{"theory",          true, {5.0, 20.0, 80.0}, {0.4, 0.2, 0.15}, {0.01, 0.005, 0.002},
                                {0.41, 0.19, 0.15}};
  const EvaluationCurve gap{"least-squares", false,           {5.0, 20.0, 80.0},
                            {NAN, 0.1, 0.0}, {NAN, NAN, 0.0}, {NAN, NAN, NAN}};
  figure.panels = {{"training law", 0.5, {weights, gap}}, {"scaled $(inputs)", 2.0, {weights, gap}}};
  return figure;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plots_evaluation)

BOOST_AUTO_TEST_CASE(every_law_and_estimator_is_named_whatever_the_axes) {
  std::string name = (fs::temp_directory_path() / "iclflow-evaluation-XXXXXX").string();
  BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
  const fs::path folder = name;
  EvaluationFigure figure = two_laws();
  for (const bool logarithmic : {true, false}) {
    figure.logarithmic_length = figure.logarithmic_loss = logarithmic;
    draw(figure, {folder, "evaluation"});
    std::ifstream in(folder / "evaluation.svg");
    const std::string svg(std::istreambuf_iterator<char>(in), {});
    for (const char* text : {"theory", "least-squares", "prediction", "training law", "scaled $(inputs)", "trained",
                             "context length", "`date`"}) {
      BOOST_TEST(svg.find(text) != std::string::npos, text);
    }
  }
  // A single law needs no name, curves without predictions no line for them.
  figure.panels.resize(1);
  figure.panels[0].curves.erase(figure.panels[0].curves.begin());
  draw(figure, {folder, "one"});
  std::ifstream in(folder / "one.svg");
  const std::string svg(std::istreambuf_iterator<char>(in), {});
  BOOST_TEST(svg.find("training law") == std::string::npos);
  BOOST_TEST(svg.find("prediction") == std::string::npos);
  fs::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(curves_of_unequal_arrays_are_refused) {
  EvaluationFigure figure = two_laws();
  figure.panels[1].curves[0].predictions.pop_back();
  BOOST_CHECK_THROW(draw(figure, {fs::temp_directory_path(), "x"}), std::invalid_argument);
  figure.panels.clear();
  BOOST_CHECK_THROW(draw(figure, {fs::temp_directory_path(), "x"}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(the_caption_says_what_is_drawn) {
  EvaluationFigure figure = two_laws();
  BOOST_TEST(caption(figure).find("closed forms") != std::string::npos);
  BOOST_TEST(caption(figure).find("One panel per law") != std::string::npos);
  figure.panels.resize(1);
  figure.panels[0].curves[0].predictions.assign(3, NAN);
  BOOST_TEST(caption(figure).find("closed forms") == std::string::npos);
  BOOST_TEST(caption(figure).find("One panel per law") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
