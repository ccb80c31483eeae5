#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "iclflow/experiment/check.hpp"
#include "iclflow/experiment/flat_summary.hpp"

using namespace iclflow;
using Json = nlohmann::ordered_json;

namespace {

std::vector<Check> checks(const std::string& text) {
  const Document document = parse_document("[[check]]\nstatement = 's'\n" + text, "f.toml");
  return read_checks(Section(document));
}

/// Four members; the last has no standard error.
const std::vector<MeasuredNumber> column{{1.0, 0.3}, {4.0, 0.4}, {2.0, 0.0}, {9.0, std::nullopt}};

Quantities quantities() {
  Quantities made;
  made.find = [](const std::string& path) -> std::optional<MeasuredNumber> {
    if (path == "a") return MeasuredNumber{2.0, 0.1};
    if (path == "b") return MeasuredNumber{4.0, std::nullopt};
    return std::nullopt;
  };
  made.column = [](const std::string& name, const std::string& members) {
    std::vector<MeasuredNumber> values;
    for (std::size_t k = 0; name == "c" && k < column.size(); ++k) {
      if (matches(std::string("m=").append(std::to_string(k)), members)) values.push_back(column[k]);
    }
    return values;
  };
  return made;
}

std::optional<MeasuredNumber> value_of(const std::string& quantity, const std::string& members = "") {
  return measure(checks("quantity = '" + quantity + "'\nvalue = 1\nmembers = '" + members + "'").front(), quantities());
}

bool met(const std::string& bounds, const std::string& quantity = "a") {
  return check_all(checks("quantity = '" + quantity + "'\n" + bounds), quantities(), false).at(0).at("met").get<bool>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_check)

BOOST_AUTO_TEST_CASE(a_check_is_met_within_its_errors_and_must_exclude_what_is_wrong) {
  BOOST_TEST(met("value = 2.3"));  // 3 standard errors
  BOOST_TEST(!met("value = 2.5"));
  BOOST_TEST(met("value = 2.5\ntolerance = 0.15"));
  BOOST_TEST(!met("value = 2.3\nstandard_errors = 2"));
  BOOST_TEST(met("value = 2.0\nrejected = [1.0, 3.0]"));
  BOOST_TEST(!met("value = 2.0\nrejected = [1.0, 2.35]"));
  BOOST_TEST(!met("value = 2.0\ntolerance = 0.7\nrejected = [1.0]"));
  BOOST_TEST(met("value = 4", "b"));
  BOOST_TEST(!met("value = 4.0001", "b"));  // no error, so none is allowed for
  BOOST_TEST(met("at_most = 2"));
  BOOST_TEST(!met("at_most = 1.9"));
  BOOST_TEST(met("at_least = 2"));
  BOOST_TEST(!met("at_least = 2.1"));
}

BOOST_AUTO_TEST_CASE(what_was_not_measured_is_missed_unless_simulations_were_left_out) {
  const auto made = checks("quantity = 'nothing'\nvalue = 1");
  BOOST_TEST(!check_all(made, quantities(), false).at(0).at("met").get<bool>());
  const Json open = check_all(made, quantities(), true);
  BOOST_TEST(open.at(0).at("met").is_null());
  BOOST_TEST(missed_checks({{"checks", open}}).empty());
  BOOST_TEST(missed_checks({{"checks", check_all(made, quantities(), false)}}).size() == 1U);
  // a check that can be measured is checked in theory too
  BOOST_TEST(!check_all(checks("quantity = 'a'\nvalue = 9"), quantities(), true).at(0).at("met").get<bool>());
}

BOOST_AUTO_TEST_CASE(quantities_of_columns) {
  BOOST_TEST(value_of("mean(c)")->value == 4.0);
  BOOST_TEST(!value_of("mean(c)")->standard_error.has_value());
  const MeasuredNumber first = *value_of("mean(c)", "m=[01]");
  BOOST_TEST(first.value == 2.5);
  BOOST_TEST(std::abs(*first.standard_error - 0.25) < 1e-15);  // sqrt(.3^2 + .4^2) / 2
  BOOST_TEST(value_of("max(c)")->value == 9.0);
  BOOST_TEST(*value_of("min(c)")->standard_error == 0.3);
  BOOST_TEST(value_of("at(c, m=1)")->value == 4.0);
  BOOST_TEST(!value_of("at(c, m=7)").has_value());
  BOOST_TEST(!value_of("mean(d)").has_value());
  const MeasuredNumber ratio = *value_of("ratio(at(c, m=1), a)");
  BOOST_TEST(ratio.value == 2.0);
  BOOST_TEST(std::abs(*ratio.standard_error - 2.0 * std::hypot(0.1, 0.05)) < 1e-15);  // relative errors .1, .05
  const MeasuredNumber difference = *value_of("difference(b, a)");
  BOOST_TEST(difference.value == 2.0);
  BOOST_TEST(*difference.standard_error == 0.1);
}

BOOST_AUTO_TEST_CASE(ill_formed_checks_are_refused) {
  for (const char* text :
       {"quantity = 'a'", "quantity = 'a'\nvalue = 1\nat_most = 2", "quantity = ''\nvalue = 1",
        "quantity = 'sum(c)'\nvalue = 1", "quantity = 'ratio(a)'\nvalue = 1", "quantity = 'mean(c'\nvalue = 1",
        "quantity = 'a'\nvalue = nan", "quantity = 'a'\nvalue = 1\nstandard_errors = -1",
        "quantity = 'a'\nvalue = 1\nother = 1", "quantity = 'a'\nat_most = 1\nrejected = [2]", "value = 1"}) {
    BOOST_CHECK_THROW(static_cast<void>(checks(text)), InputError);
  }
}

BOOST_AUTO_TEST_CASE(summaries_are_flattened_to_paths) {
  const Json summary = Json::parse(R"({
    "version": "1", "seeds": [1], "problem": {"heads": 2},
    "prediction": {"dedicated": {"loss": 0.5, "mu": [1.0, 2.0]}, "pair": null},
    "dynamics": [{"name": "sgd", "kind": "attention", "wall_seconds": 3.0,
      "final_mu": [[1.0, 2.0], [3.0, null]], "final_mu_standard_error": [[0.1, 0.2], [0.3, null]],
      "final_loss": 4.0, "final_loss_standard_error": 0.4,
      "phases": {"emergence_time": 7.0, "emergence_time_standard_error": 0.7},
      "leakage": {"cross": 5.0}, "leakage_standard_error": {"cross": 0.5},
      "events": [{"time": 1.0}], "event": [{"level": 2.0, "time": 1.5, "time_standard_error": 0.25, "count": 2}]}],
    "comparison": [{"theory": "ode", "simulation": "sgd", "loss_gap": 6.0}],
    "evaluation": [{"context_length": 100, "estimator": "ridge", "loss": 8.0, "standard_error": 0.8, "best": true}]
  })");
  const FlatSummary expected{{"prediction.dedicated.loss", 0.5},
                             {"prediction.dedicated.mu[0]", 1.0},
                             {"prediction.dedicated.mu[1]", 2.0},
                             {"dynamics.sgd.final_mu[0][0]", 1.0},
                             {"dynamics.sgd.final_mu[0][1]", 2.0},
                             {"dynamics.sgd.final_mu[1][0]", 3.0},
                             {"dynamics.sgd.final_mu[0][0]_standard_error", 0.1},
                             {"dynamics.sgd.final_mu[0][1]_standard_error", 0.2},
                             {"dynamics.sgd.final_mu[1][0]_standard_error", 0.3},
                             {"dynamics.sgd.final_loss", 4.0},
                             {"dynamics.sgd.final_loss_standard_error", 0.4},
                             {"dynamics.sgd.phases.emergence_time", 7.0},
                             {"dynamics.sgd.phases.emergence_time_standard_error", 0.7},
                             {"dynamics.sgd.leakage.cross", 5.0},
                             {"dynamics.sgd.leakage.cross_standard_error", 0.5},
                             {"dynamics.sgd.event[0].level", 2.0},
                             {"dynamics.sgd.event[0].time", 1.5},
                             {"dynamics.sgd.event[0].time_standard_error", 0.25},
                             {"dynamics.sgd.event[0].count", 2.0},
                             {"comparison.ode.sgd.loss_gap", 6.0},
                             {"evaluation.100.ridge.loss", 8.0},
                             {"evaluation.100.ridge.loss_standard_error", 0.8},
                             {"evaluation.100.ridge.best", 1.0}};
  const FlatSummary flat = flatten(summary);
  BOOST_REQUIRE_EQUAL(flat.size(), expected.size());
  for (std::size_t k = 0; k < flat.size(); ++k) {
    BOOST_TEST(flat[k].first == expected[k].first);
    BOOST_TEST(flat[k].second == expected[k].second);
  }
  const auto found = quantities_of(summary).find("evaluation.100.ridge.loss");
  BOOST_REQUIRE(found.has_value());
  BOOST_TEST(found->value == 8.0);
  BOOST_TEST(found->standard_error.value_or(0.0) == 0.8);
}

BOOST_AUTO_TEST_SUITE_END()
