#include "iclflow/experiment/check.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "iclflow/experiment/flat_summary.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

bool holds(const Check& check, const MeasuredNumber& measured) {
  if (!std::isfinite(measured.value)) return false;
  if (check.at_most) return measured.value <= *check.at_most;
  if (check.at_least) return measured.value >= *check.at_least;
  // a few units in the last place besides, for exact numbers that were added up
  const double rounding = 1e-14 * std::abs(*check.value);
  const double reach = rounding + check.tolerance + check.standard_errors * measured.standard_error.value_or(0.0);
  const auto within = [&](double value) { return std::abs(measured.value - value) <= reach; };
  return within(*check.value) && std::none_of(check.rejected.begin(), check.rejected.end(), within);
}

Json predicted(const Check& check) {
  if (check.value) return *check.value;
  return check.at_most ? fmt::format("at most {}", *check.at_most) : fmt::format("at least {}", *check.at_least);
}

Check read_check(const Section& section) {
  Check check;
  check.statement = section.text("statement");
  check.quantity = section.text("quantity");
  check.members = section.text("members", "");
  const std::string allowed = "one of value, at_most, at_least";
  const int given =
      (section.has("value") ? 1 : 0) + (section.has("at_most") ? 1 : 0) + (section.has("at_least") ? 1 : 0);
  if (given != 1) section.fail("value", given == 0 ? "is missing" : "stands beside another bound", allowed);
  if (section.has("at_most")) check.at_most = section.number("at_most", Sign::any);
  if (section.has("at_least")) check.at_least = section.number("at_least", Sign::any);
  if (section.has("value")) {
    check.value = section.number("value", Sign::any);
    check.tolerance = section.number("tolerance", Sign::non_negative, check.tolerance);
    check.standard_errors = section.number("standard_errors", Sign::non_negative, check.standard_errors);
    if (section.has("rejected")) check.rejected = section.numbers("rejected", Sign::any);
  }
  section.finish();
  return check;
}

}  // namespace

void Claim::resolve(TomlText& text) const {
  text.table("claim");
  text.put("statement", statement);
  text.put("source", source);
}

void Check::resolve(TomlText& text) const {
  text.element("check");
  text.put("statement", statement);
  text.put("quantity", quantity);
  if (!members.empty()) text.put("members", members);
  if (at_most) text.put("at_most", *at_most);
  if (at_least) text.put("at_least", *at_least);
  if (!value) return;
  text.put("value", *value);
  text.put("tolerance", tolerance);
  text.put("standard_errors", standard_errors);
  if (!rejected.empty()) text.put("rejected", rejected);
}

std::optional<Claim> read_claim(const Section& root) {
  const auto section = root.find_section("claim");
  if (!section) return std::nullopt;
  Claim claim{section->text("statement"), section->text("source")};
  section->finish();
  return claim;
}

std::vector<Check> read_checks(const Section& root) {
  std::vector<Check> checks;
  for (const Section& section : root.sections("check")) {
    checks.push_back(read_check(section));
    check_quantity(section, checks.back());
  }
  return checks;
}

Json check_all(const std::vector<Check>& checks, const Quantities& quantities, bool theory_only) {
  Json all = Json::array();
  for (const Check& check : checks) {
    const std::optional<MeasuredNumber> measured = measure(check, quantities);
    Json json = {{"statement", check.statement}, {"quantity", check.quantity}};
    json["measured"] = measured ? or_null(measured->value) : Json(nullptr);
    json["standard_error"] = measured ? or_null(measured->standard_error) : Json(nullptr);
    json["predicted"] = predicted(check);
    if (check.value) {
      json["tolerance"] = check.tolerance;
      json["standard_errors"] = check.standard_errors;
    }
    json["rejected"] = check.rejected;
    json["met"] = !measured && theory_only ? Json(nullptr) : Json(measured && holds(check, *measured));
    all.push_back(std::move(json));
  }
  return all;
}

Quantities quantities_of(const Json& summary) {
  const FlatSummary flat = flatten(summary);
  const std::unordered_map<std::string, double> values(flat.begin(), flat.end());
  Quantities quantities;
  quantities.find = [values](const std::string& path) -> std::optional<MeasuredNumber> {
    const auto found = values.find(path);
    if (found == values.end()) return std::nullopt;
    const auto error = values.find(path + "_standard_error");
    return MeasuredNumber{found->second, error == values.end() ? std::nullopt : std::optional(error->second)};
  };
  return quantities;
}

std::vector<std::string> missed_checks(const Json& summary) {
  std::vector<std::string> sentences;
  for (const Json& check : summary.value("checks", Json::array())) {
    const Json& met = check.at("met");
    if (met.is_null() || met.get<bool>()) continue;
    const Json& error = check.at("standard_error");
    const std::string measured = check.at("measured").is_null()
                                     ? "which was not measured"
                                     : fmt::format("measured {}{}", check.at("measured").dump(),
                                                   error.is_number() ? " +- " + error.dump() : std::string());
    const Json& wanted = check.at("predicted");
    sentences.push_back(fmt::format("check missed: {} ({}: predicted {}, {})", check.at("statement").get<std::string>(),
                                    check.at("quantity").get<std::string>(),
                                    wanted.is_string() ? wanted.get<std::string>() : wanted.dump(), measured));
  }
  return sentences;
}

bool matches(const std::string& name, const std::string& glob) {
  return glob.empty() || ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace iclflow
