#include "iclflow/experiment/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "iclflow/analysis/power_law.hpp"
#include "iclflow/analysis/straight_line.hpp"
#include "iclflow/experiment/check.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::ordered_json;

Scaling read_scaling(const Section& section) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  Scaling scaling;
  scaling.name = section.text("name");
  if (scaling.name.empty() || scaling.name.size() > 64 ||
      scaling.name.find_first_not_of(letters) != std::string::npos) {
    section.fail("name", fmt::format("impossible value ({})", TomlText::quoted(scaling.name.substr(0, 64))),
                 "one to 64 of the characters A-Z a-z 0-9 _ -, different for each scaling");
  }
  scaling.x = section.text("x");
  scaling.y = section.texts("y");
  if (scaling.y.empty()) section.fail("y", "is an empty array", "columns of the table");
  scaling.labels = section.has("labels") ? section.texts("labels") : std::vector<std::string>{};
  if (!scaling.labels.empty() && scaling.labels.size() != scaling.y.size()) {
    section.fail("labels", fmt::format("has {} entries for {} columns", scaling.labels.size(), scaling.y.size()),
                 "one label per entry of y");
  }
  scaling.subtract = section.text("subtract", "");
  scaling.logarithm = section.choice("form", {{"power", "logarithm"}}, "power") == "logarithm";
  scaling.group = section.text("group", "");
  scaling.members = section.text("members", "");
  if (section.has("fit_from")) scaling.fit_from = section.number("fit_from", Sign::any);
  if (section.has("fit_to")) scaling.fit_to = section.number("fit_to", Sign::any);
  if (section.has("exponent")) scaling.exponent = section.number("exponent", Sign::any);
  scaling.x_label = section.text("x_label", scaling.x);
  scaling.y_label = section.text("y_label", scaling.y.size() == 1 ? scaling.y.front() : scaling.name);
  section.finish();
  return scaling;
}

/// What tells columns apart in a legend: what stands behind the last dot.
std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

struct Points {
  std::vector<double> x, y, error;  ///< error is empty unless every point has one
};

/// Points of one series, in the order of x.
class Series {
 public:
  Series(const Scaling& scaling, const Table& table) : scaling_(scaling), table_(table) {}

  [[nodiscard]] Points points(const std::string& column, const std::string& group) const {
    const TableColumn* x = numeric(scaling_.x);
    std::vector<std::size_t> rows;
    bool known = true;
    for (std::size_t k = 0; k < table_.rows && x != nullptr; ++k) {
      if (!matches(table_.columns.front().texts[k], scaling_.members) || group_of(k) != group) continue;
      const MeasuredNumber y = value(column, k);
      if (!std::isfinite(x->numbers[k]) || !std::isfinite(y.value)) continue;
      rows.push_back(k);
      known = known && y.standard_error.has_value();
    }
    std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return x->numbers[a] < x->numbers[b]; });
    Points points;
    for (const std::size_t k : rows) {
      const MeasuredNumber y = value(column, k);
      points.x.push_back(x->numbers[k]);
      points.y.push_back(y.value);
      if (known) points.error.push_back(*y.standard_error);
    }
    return points;
  }

  /// The groups in the order of their first row; a single empty one without grouping.
  [[nodiscard]] std::vector<std::string> groups() const {
    std::vector<std::string> all;
    for (std::size_t k = 0; k < table_.rows; ++k) {
      if (!matches(table_.columns.front().texts[k], scaling_.members)) continue;
      if (std::find(all.begin(), all.end(), group_of(k)) == all.end()) all.push_back(group_of(k));
    }
    return all;
  }

 private:
  /// A cell and its error less the subtracted one; NaN when missing.
  [[nodiscard]] MeasuredNumber value(const std::string& column, std::size_t row) const {
    MeasuredNumber own = cell(column, row);
    if (!scaling_.subtract.empty()) own.value -= cell(scaling_.subtract, row).value;
    return own;
  }
  [[nodiscard]] MeasuredNumber cell(const std::string& column, std::size_t row) const {
    const TableColumn* found = numeric(column);
    const TableColumn* error = numeric(column + "_standard_error");
    if (found == nullptr) return {std::numeric_limits<double>::quiet_NaN(), std::nullopt};
    const bool known = error != nullptr && error->numbers[row] > 0.0;
    return {found->numbers[row], known ? std::optional(error->numbers[row]) : std::nullopt};
  }
  [[nodiscard]] const TableColumn* numeric(const std::string& name) const {
    const TableColumn* column = table_.find(name);
    return column != nullptr && !column->text ? column : nullptr;
  }
  [[nodiscard]] std::string group_of(std::size_t row) const {
    const TableColumn* column = scaling_.group.empty() ? nullptr : table_.find(scaling_.group);
    return column == nullptr ? std::string() : Table::cell(*column, row);
  }

  const Scaling& scaling_;
  const Table& table_;
};

Points fitted_part(const Scaling& scaling, const Points& all) {
  Points part;
  for (std::size_t k = 0; k < all.x.size(); ++k) {
    if (all.x[k] < scaling.fit_from.value_or(all.x[k]) || all.x[k] > scaling.fit_to.value_or(all.x[k])) continue;
    part.x.push_back(all.x[k]);
    part.y.push_back(all.y[k]);
    if (!all.error.empty()) part.error.push_back(all.error[k]);
  }
  return part;
}

/// The line through ln x and ln y (or y).
StraightLine fit_line(const Scaling& scaling, const Points& points) {
  if (scaling.logarithm) return fit_logarithm(points.x, points.y, points.error);
  static_cast<void>(fit_power_law(points.x, points.y, points.error));  // refuses what has no logarithm
  std::vector<double> y;
  std::vector<double> error;
  for (const double value : points.y) y.push_back(std::log(value));
  for (std::size_t k = 0; k < points.error.size(); ++k) error.push_back(points.error[k] / points.y[k]);
  return fit_logarithm(points.x, y, error);
}

void add_fit(const Scaling& scaling, const StraightLine& line, Json& json) {
  if (scaling.logarithm) {
    json["slope"] = line.slope;
    json["slope_standard_error"] = line.slope_standard_error;
    json["intercept"] = line.intercept;
    json["intercept_standard_error"] = line.intercept_standard_error;
  } else {
    const double prefactor = std::exp(line.intercept);
    json["exponent"] = line.slope;
    json["exponent_standard_error"] = line.slope_standard_error;
    json["prefactor"] = prefactor;
    json["prefactor_standard_error"] = prefactor * line.intercept_standard_error;
  }
  json["chi_square"] = line.chi_square;
  json["degrees_of_freedom"] = line.degrees_of_freedom;
  json["probability"] = line.probability;
}

}  // namespace

std::vector<Scaling> read_scalings(const Section& root) {
  std::vector<Scaling> scalings;
  std::set<std::string> seen;
  for (const Section& section : root.sections("scaling")) {
    scalings.push_back(read_scaling(section));
    if (!seen.insert(scalings.back().name).second) {
      section.fail("name", fmt::format("used twice (\"{}\")", scalings.back().name), "a name of its own");
    }
  }
  return scalings;
}

FittedScaling fit_scaling(const Scaling& scaling, const Table& table, const std::string& title) {
  FittedScaling fitted;
  fitted.json = {{"name", scaling.name}, {"form", scaling.logarithm ? "logarithm" : "power"}, {"x", scaling.x}};
  fitted.json["predicted"] = scaling.exponent ? Json(*scaling.exponent) : Json(nullptr);
  fitted.json["series"] = Json::array();
  fitted.figure = {title, scaling.x_label, scaling.y_label, scaling.logarithm, scaling.exponent, {}};
  const Series series(scaling, table);
  for (std::size_t k = 0; k < scaling.y.size(); ++k) {
    for (const std::string& group : series.groups()) {
      const Points all = series.points(scaling.y[k], group);
      const Points part = fitted_part(scaling, all);
      Json json = {{"y", scaling.y[k]}, {"group", group.empty() ? Json(nullptr) : Json(group)}};
      json["points"] = part.x.size();
      std::string label = scaling.labels.empty() ? last_part(scaling.y[k]) : scaling.labels[k];
      if (!group.empty()) label += fmt::format(", {} = {}", last_part(scaling.group), group);
      ScalingSeries drawn{label, all.x, all.y, all.error, {}};
      try {
        const StraightLine line = fit_line(scaling, part);
        add_fit(scaling, line, json);
        drawn.fit =
            ScalingLine{line.slope, line.slope_standard_error, line.x_mean, line.y_mean, part.x.front(), part.x.back()};
      } catch (const std::invalid_argument& error) {
        json["problem"] = error.what();
      }
      fitted.json["series"].push_back(std::move(json));
      if (!all.x.empty()) fitted.figure.series.push_back(std::move(drawn));
    }
  }
  return fitted;
}

}  // namespace iclflow
