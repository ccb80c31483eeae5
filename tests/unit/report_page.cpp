#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "iclflow/experiment/report.hpp"
#include "unit/report_sample.hpp"

using iclflow::Report;

namespace {

Report sample() {
  Report report;
  report.title = "Two tasks, two heads";
  report.summary = report_sample::summary();
  report.experiment = "title = \"Two tasks, two heads\"\n";
  report.experiment_file = "experiment.toml";
  report.versions = {{"Eigen", "3.4.0"}};
  const std::string svg =
      "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 243 290\" xmlns=\"http://www.w3.org/2000/svg\">"
      "<title>Gnuplot</title><g id='a' clip-path=\"url(#a)\"><use xlink:href='#a'/></g></svg>\n";
  report.figures = {{"loss", "the loss", svg, ""}, {"leakage", "the leakage", svg, ""}};
  return report;
}

bool holds(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

/// Names of elements that are not closed where they should be.
std::vector<std::string> unbalanced(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return {"no end of tag"};
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/' || tag.starts_with("meta")) continue;
    const bool closing = tag[0] == '/';
    const std::string name = tag.substr(closing ? 1 : 0, tag.find_first_of(" \n") - (closing ? 1 : 0));
    if (!closing) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return {"/" + name};
    } else {
      open.pop_back();
    }
  }
  return open;
}

std::size_t count(const std::string& page, const std::string& text) {
  std::size_t found = 0;
  for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(report_page)

BOOST_AUTO_TEST_CASE(numbers_with_errors) {
  using iclflow::with_error;
  BOOST_TEST(with_error(2.1391, 0.0042) == "2.139(4)");
  BOOST_TEST(with_error(2.1391, 0.0012) == "2.1391(12)");
  BOOST_TEST(with_error(-0.12345, 0.0096) == "−0.123(10)");
  BOOST_TEST(with_error(1234.5, 56.0) == "1230(60)");
  BOOST_TEST(with_error(12.3, 4.0) == "12(4)");
  BOOST_TEST(with_error(1.2345e-7, 4e-9) == "1.23(4)×10⁻⁷");
  BOOST_TEST(with_error(3.21e8, 2e6) == "3.21(2)×10⁸");
  BOOST_TEST(with_error(0.0, 0.03) == "0.00(3)");
  BOOST_TEST(with_error(0.5, 0.0) == "0.5");
  BOOST_TEST(with_error(0.5, std::numeric_limits<double>::quiet_NaN()) == "0.5");
  BOOST_TEST(with_error(std::numeric_limits<double>::infinity(), 0.1) == "–");
}

BOOST_AUTO_TEST_CASE(numbers_without_errors) {
  using iclflow::significant;
  BOOST_TEST(significant(2.1390001) == "2.139");
  BOOST_TEST(significant(123456.7) == "123457");
  BOOST_TEST(significant(0.99999999) == "1");
  BOOST_TEST(significant(100.0) == "100");
  BOOST_TEST(significant(-0.00012345678) == "−0.00012346");
  BOOST_TEST(significant(1.5e-9) == "1.5×10⁻⁹");
  BOOST_TEST(significant(-2e12) == "−2×10¹²");
  BOOST_TEST(significant(41.28, 3) == "41.3");
  BOOST_TEST(significant(0.0) == "0");
  BOOST_TEST(significant(std::numeric_limits<double>::quiet_NaN()) == "–");
}

BOOST_AUTO_TEST_CASE(the_page_says_what_the_run_found) {
  const std::string page = iclflow::render_report(sample());
  for (const char* const text :
       {"All expectations met (1).", "0.5232(4)", "5.882(12)", "2.951(12) [0]", "0.41(3)", "0.0310(11)", "0.51563",
        "Heads 0, 1 tie on task 1.", "Head 1 wins tasks 0, 1.", "iclflow run experiment.toml", "Seeds: 1, 2, 3.",
        "3.4.0", "the leakage", "iclflow 0.1.0"}) {
    BOOST_TEST(holds(page, text), "the page lacks: " << text);
  }
  for (const char* const reason : {"not reached", "one task and two heads only", "no formula for this start"}) {
    BOOST_TEST(holds(page, std::string("– <small>") + reason + "</small>"),
               "a missing value lacks its reason: " << reason);
  }
  BOOST_TEST(!holds(page, "null"));
  BOOST_TEST(!holds(page, "nan"));
}

BOOST_AUTO_TEST_CASE(the_page_is_whole_and_needs_nothing_else) {
  const std::string page = iclflow::render_report(sample());
  BOOST_TEST(unbalanced(page).empty());
  BOOST_TEST(count(page, "<svg") == 2U);
  for (const char* const text : {"<script", "<link", "<img", "<iframe", "@import", "src=", "<?xml", "Gnuplot"}) {
    BOOST_TEST(!holds(page, text), "the page holds " << text);
  }
  BOOST_TEST(count(page, "http") == 3U);  // two namespaces and http-equiv, nothing to fetch
  // ids are unique and references follow them
  BOOST_TEST(count(page, "id='loss-a'") == 1U);
  BOOST_TEST(count(page, "id='leakage-a'") == 1U);
  BOOST_TEST(holds(page, "url(#leakage-a)"));
  BOOST_TEST(holds(page, "href='#loss-a'"));
}

BOOST_AUTO_TEST_CASE(every_text_is_escaped) {
  const std::string hostile = "<script>alert('1')</script>&\"\xff\x02";
  Report report = sample();
  report.title = report.experiment = report.experiment_file = hostile;
  report.versions = {{hostile, hostile}};
  report.figures.push_back({hostile, hostile, "", hostile});
  report.figures.push_back({hostile, hostile, report.figures[0].svg, ""});
  auto& summary = report.summary;
  const nlohmann::ordered_json text = hostile.substr(0, hostile.size() - 2);  // JSON holds no broken UTF-8
  summary["version"] = summary["system"] = text;
  summary["problem"][text.get<std::string>()] = text;
  summary["dynamics"][0]["name"] = summary["dynamics"][1]["kind"] = summary["dynamics"][1]["status"] = text;
  summary["comparison"][0]["theory"] = summary["expect"][0]["key"] = text;
  summary["seeds"] = {text, text};
  const std::string page = iclflow::render_report(report);
  BOOST_TEST(!holds(page, "<script"));
  BOOST_TEST(!holds(page, "alert('1')"));
  BOOST_TEST(!holds(page, "\xff"));
  BOOST_TEST(!holds(page, "\x02"));
  BOOST_TEST(unbalanced(page).empty());
}

BOOST_AUTO_TEST_CASE(verdicts) {
  Report report = sample();
  report.summary["expect"][0]["met"] = false;
  BOOST_TEST(holds(iclflow::render_report(report), "Expectations missed: 1 of 1."));
  report.summary["expect"] = nlohmann::ordered_json::array();
  BOOST_TEST(holds(iclflow::render_report(report), "states no expectation"));
  report.summary["status"] = "interrupted";
  BOOST_TEST(holds(iclflow::render_report(report), "was interrupted"));
  report.summary["status"] = "failed";
  report.summary["dynamics"][0]["failure"] = "the step fell below 1e-14 at t = 3";
  BOOST_TEST(holds(iclflow::render_report(report), "<i>theory</i>: the step fell below 1e-14 at t = 3"));
}

BOOST_AUTO_TEST_CASE(parts_that_are_missing_or_odd_are_left_out) {
  BOOST_TEST(unbalanced(iclflow::render_report(Report{})).empty());
  const nlohmann::ordered_json full = report_sample::summary();
  for (const auto& [key, value] : full.items()) {
    for (const nlohmann::ordered_json& odd : {nlohmann::ordered_json(nullptr), nlohmann::ordered_json(3),
                                              nlohmann::ordered_json("x"), nlohmann::ordered_json::array({1, "y"})}) {
      Report report = sample();
      report.summary[key] = odd;
      BOOST_TEST(unbalanced(iclflow::render_report(report)).empty(), key << " = " << odd.dump());
    }
  }
  Report fewer = sample();
  fewer.summary["prediction"]["dedicated"] = nullptr;
  BOOST_TEST(holds(iclflow::render_report(fewer), "fewer heads than tasks"));
}

BOOST_AUTO_TEST_CASE(the_file_is_written_whole_or_refused) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto file = folder / "iclflow-report-test.html";
  iclflow::write_report(file, sample());
  std::ifstream in(file);
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  BOOST_TEST((page == iclflow::render_report(sample())));
  BOOST_TEST(!std::filesystem::exists(folder / "iclflow-report-test.html.part"));
  std::filesystem::remove(file);
  BOOST_CHECK_THROW(iclflow::write_report(folder / "no such folder" / "report.html", sample()), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
