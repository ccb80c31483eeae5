#include <boost/test/unit_test.hpp>
#include <cmath>

#include "iclflow/regression/evaluate.hpp"
#include "support/plain_model.hpp"
#include "support/problems.hpp"

using namespace iclflow;
using Json = nlohmann::json;

BOOST_AUTO_TEST_SUITE(regression_evaluate)

namespace {

Json rows(const Matrix& m) {
  Json result = Json::array();
  for (Eigen::Index r = 0; r < m.rows(); ++r) result.push_back(std::vector<double>(m.row(r).begin(), m.row(r).end()));
  return result;
}

struct Case {
  WeightLayout layout;
  Eigen::VectorXd weights;
  std::vector<plain::Sample> samples;
  Json document;
};

Case make_case(Parametrisation parametrisation, int embedding) {
  const Problem p = problems::uneven(parametrisation);
  Case c;
  c.layout = WeightLayout::of(p);
  c.layout.embedding = embedding;
  c.layout.score_factor = parametrisation == Parametrisation::split ? 0.37 : 1.0;
  c.weights = problems::dense_weights(c.layout, 0.4, 6);
  c.samples = plain::draw(p, {8, Stream::training, 0, 0}, 4);
  Json& doc = c.document;
  const bool merged = parametrisation == Parametrisation::merged;
  doc["parametrisation"] = merged ? "merged" : "split";
  if (!merged) doc["score_scale"] = c.layout.score_factor;
  for (int h = 0; h < c.layout.heads; ++h) {
    const HeadView<const double> at = head(c.layout, std::as_const(c.weights), h);
    if (merged) {
      doc["W"].push_back(rows(at.w));
      doc["U"].push_back(rows(at.u));
    } else {
      doc["K"].push_back(rows(at.k));
      doc["Q"].push_back(rows(at.q));
      doc["V"].push_back(rows(at.v));
      doc["O"].push_back(rows(at.o));
    }
  }
  for (const plain::Sample& s : c.samples) {
    doc["X"].push_back(rows(s.x));
    doc["Y"].push_back(rows(s.y));
    doc["q"].push_back(std::vector<double>(s.q.begin(), s.q.end()));
    doc["target"].push_back(std::vector<double>(s.target.begin(), s.target.end()));
  }
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_the_plain_models) {
  for (const auto& [parametrisation, e] :
       {std::pair{Parametrisation::merged, 7}, {Parametrisation::split, 7}, {Parametrisation::split, 4}}) {
    const Case c = make_case(parametrisation, e);
    const auto result = evaluate(c.document);
    const double loss = plain::loss(c.layout, c.weights, c.samples);
    BOOST_TEST(std::abs(result.at("loss").get<double>() - loss) < 1e-12 * loss);  // rounding
    const Eigen::VectorXd gradient = plain::gradient(c.layout, c.weights, c.samples);
    Eigen::VectorXd found(gradient.size());
    Eigen::Index k = 0;
    for (std::size_t h = 0; h < static_cast<std::size_t>(c.layout.heads); ++h) {
      for (const auto& [name, stack] : result.at("gradient").items()) {
        for (const auto& row : stack.at(h)) {
          for (const auto& entry : row) found(k++) = entry.get<double>();
        }
      }
    }
    BOOST_TEST(k == gradient.size());
    BOOST_TEST((found - gradient).norm() < 1e-12 * gradient.norm());
  }
}

BOOST_AUTO_TEST_CASE(faults_are_pointed_at) {
  const Case c = make_case(Parametrisation::split, 7);
  const auto pointer = [&](const auto& spoil) {
    Json document = c.document;
    spoil(document);
    try {
      static_cast<void>(evaluate(document));
    } catch (const JsonError& error) {
      return error.pointer();
    }
    return std::string("accepted");
  };
  BOOST_TEST(pointer([](Json& d) { d.erase("K"); }) == "/K");
  BOOST_TEST(pointer([](Json& d) { d["K"][1][2].erase(0); }) == "/K/1/2");
  BOOST_TEST(pointer([](Json& d) { d["Q"].erase(0); }) == "/Q");
  BOOST_TEST(pointer([](Json& d) { d["X"][0][1][2] = "text"; }) == "/X/0/1/2");
  BOOST_TEST(pointer([](Json& d) { d["X"][0][1][2] = nullptr; }) == "/X/0/1/2");
  BOOST_TEST(pointer([](Json& d) { d["q"] = Json::array(); }) == "/q");
  BOOST_TEST(pointer([](Json& d) { d["parametrisation"] = "other"; }) == "/parametrisation");
  BOOST_TEST(pointer([](Json& d) { d["score_scale"] = "unit"; }) == "/score_scale");
  BOOST_TEST(pointer([](Json& d) { d["extra"] = 1; }) == "/extra");
  BOOST_TEST(pointer([](Json& d) { d = 3; }) == "");
  BOOST_TEST(pointer([](Json& d) { d["O"] = Json::array({Json::array()}); }) != "accepted");
}

BOOST_AUTO_TEST_SUITE_END()
