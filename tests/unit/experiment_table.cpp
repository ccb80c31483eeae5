#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <netcdf>

#include "iclflow/experiment/scaling.hpp"
#include "iclflow/experiment/table.hpp"

using namespace iclflow;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// y = 3 x^-1/2 for group 1 with errors, y = x for group 2 without; one failed member, one out of the fitted range.
Table sample() {
  Table table;
  table.columns = {{"member", true, {"a", "b", "c, d", "e", "f\"", "g", "far"}, {}},
                   {"status", true, {"completed", "completed", "completed", "failed", "completed", "", ""}, {}},
                   {"error", true, {"", "", "", "two\r\nlines", "", "", ""}, {}},
                   {"x", false, {}, {4, 1, 16, 64, 1, 2, 1000}},
                   {"kind", false, {}, {1, 1, 1, 1, 2, 2, 1}},
                   {"y", false, {}, {1.5, 3.0, 0.75, missing, 0.1, 0.2, 77}},
                   {"y_standard_error", false, {}, {0.01, 0.02, 0.005, missing, missing, 0.0, 0.1}}};
  table.rows = 7;
  return table;
}

Scaling scaling(const std::string& text) {
  const Document document =
      parse_document("[[scaling]]\nname = 's'\nx = 'x'\ny = ['y']\nexponent = -0.5\n" + text, "f.toml");
  return read_scalings(Section(document)).front();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(experiment_table)

BOOST_AUTO_TEST_CASE(csv_is_quoted_as_rfc_4180_says_and_keeps_every_digit) {
  Table table = sample();
  table.columns[5].numbers[0] = 0.1 + 0.2;
  const std::string text = csv(table);
  BOOST_TEST(
      text.starts_with("member,status,error,x,kind,y,y_standard_error\r\n"
                       "a,completed,,4,1,0.30000000000000004,0.01\r\n"));
  BOOST_TEST(text.find("\r\n\"c, d\",completed,,16,1,0.75,0.005\r\ne,failed,\"two\r\nlines\",64,1,,\r\n"
                       "\"f\"\"\",completed,,1,2,0.1,\r\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(netcdf_holds_the_same_columns) {
  const auto file = std::filesystem::temp_directory_path() / ("iclflow_table_" + std::to_string(::getpid()) + ".nc");
  write_table_netcdf(file, sample(), {{"title", "t"}});
  {
    const netCDF::NcFile read(file.string(), netCDF::NcFile::read);
    BOOST_TEST(read.getDim("member").getSize() == 7U);
    std::vector<double> y(7);
    read.getVar("y").getVar(y.data());
    BOOST_TEST(y[1] == 3.0);
    BOOST_TEST(std::isnan(y[3]));
    std::vector<char*> names(7);
    read.getVar("member").getVar(names.data());
    BOOST_TEST(std::string(names[2]) == "c, d");
    nc_free_string(names.size(), names.data());
  }
  std::filesystem::remove(file);
}

BOOST_AUTO_TEST_CASE(a_scaling_is_fitted_group_by_group_within_its_range) {
  const FittedScaling fitted = fit_scaling(scaling("group = 'kind'\nfit_to = 100"), sample(), "t");
  const auto& series = fitted.json.at("series");
  BOOST_REQUIRE_EQUAL(series.size(), 2U);
  BOOST_TEST(series[0].at("points") == 3);  // without the failed member and the one that is far out
  BOOST_TEST(std::abs(series[0].at("exponent").get<double>() + 0.5) < 1e-13);
  BOOST_TEST(std::abs(series[0].at("prefactor").get<double>() - 3.0) < 1e-12);
  // relative errors 1/150 each, ln x = 0, ln 4, ln 16: variance (1/150)^2 / (2 ln^2 4)
  BOOST_TEST(std::abs(series[0].at("exponent_standard_error").get<double>() -
                      1.0 / (150.0 * std::sqrt(2.0) * std::log(4.0))) < 1e-13);
  BOOST_TEST(series[1].contains("problem"));  // two points without errors
  BOOST_TEST(fitted.figure.series.at(0).x.size() == 4U);
  BOOST_TEST(!fitted.figure.series.at(1).fit.has_value());
}

BOOST_AUTO_TEST_CASE(a_logarithm_is_fitted_in_ln_x) {
  Table table = sample();
  for (std::size_t k = 0; k < 7; ++k) table.columns[5].numbers[k] = 2.0 - 3.0 * std::log(table.columns[3].numbers[k]);
  const FittedScaling fitted = fit_scaling(scaling("form = 'logarithm'\nmembers = '[abe]'"), table, "t");
  const auto& series = fitted.json.at("series").at(0);
  BOOST_TEST(series.at("points") == 3);
  BOOST_TEST(std::abs(series.at("slope").get<double>() + 3.0) < 1e-13);
  BOOST_TEST(std::abs(series.at("intercept").get<double>() - 2.0) < 1e-13);
}

BOOST_AUTO_TEST_CASE(a_column_is_taken_off) {
  Table table = sample();
  table.columns.push_back({"floor", false, {}, {10, 20, 30, 40, 50, 60, missing}});
  table.columns.push_back({"floor_standard_error", false, {}, std::vector<double>(7, 0.03)});
  for (std::size_t k = 0; k < 7; ++k) table.columns[5].numbers[k] += table.columns[7].numbers[k];
  for (std::size_t k = 0; k < 7; ++k) table.columns[6].numbers[k] = 0.04;
  const FittedScaling fitted = fit_scaling(scaling("members = '[abcd]*'\nsubtract = 'floor'"), table, "t");
  BOOST_TEST(fitted.json.at("series").at(0).at("points") == 3);
  BOOST_TEST(std::abs(fitted.json.at("series").at(0).at("exponent").get<double>() + 0.5) < 1e-12);
  BOOST_TEST(std::abs(fitted.figure.series.at(0).standard_error.at(0) - 0.04) < 1e-15);
}

BOOST_AUTO_TEST_CASE(columns_that_are_not_there_are_told) {
  Scaling other = scaling("");
  other.y = {"z"};
  const FittedScaling fitted = fit_scaling(other, sample(), "t");
  BOOST_TEST(fitted.json.at("series").at(0).contains("problem"));
}

BOOST_AUTO_TEST_SUITE_END()
