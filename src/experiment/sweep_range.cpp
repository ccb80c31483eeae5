#include <fmt/format.h>

#include <cmath>

#include "iclflow/experiment/sweep.hpp"

namespace iclflow {

namespace {

struct Ends {
  double from;
  double to;
  bool whole;  ///< both written as integers: so are the values
};

Value as_value(double number, bool whole) {
  Value value;
  value.kind = whole ? Value::Kind::integer : Value::Kind::real;
  value.integer = whole ? std::llround(number) : 0;
  value.real = whole ? 0.0 : number;
  return value;
}

void check_count(const Section& range, std::string_view key, double count) {
  if (count <= static_cast<double>(largest_member_count)) return;
  range.fail(key, fmt::format("impossible value: {:.3g} values", count),
             fmt::format("at most {} values", largest_member_count));
}

std::vector<double> by_points(const Section& range, const Ends& ends) {
  const auto points = range.integer("points", 2, static_cast<std::int64_t>(largest_member_count));
  const bool linear = range.choice("spacing", {{"geometric", "linear"}}, "geometric") == "linear";
  if (!linear && !(ends.from > 0.0 && ends.to > 0.0)) {
    range.fail("from", "a geometric range needs ends above 0", "positive from and to, or spacing = \"linear\"");
  }
  std::vector<double> values;
  for (std::int64_t k = 0; k < points; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(points - 1);
    values.push_back(linear ? ends.from + share * (ends.to - ends.from)
                            : ends.from * std::pow(ends.to / ends.from, share));
  }
  values.back() = ends.to;
  return values;
}

std::vector<double> by_factor(const Section& range, const Ends& ends) {
  const double factor = range.number("factor", Sign::positive);
  if (!(ends.from > 0.0 && ends.to > 0.0)) {
    range.fail("from", "a geometric range needs ends above 0", "positive from and to, or step in place of factor");
  }
  const double span = std::log(ends.to / ends.from);
  const double stride = std::log(factor);
  if (stride == 0.0 || span * stride < 0.0) {
    range.fail("factor", fmt::format("impossible value ({}): the range never ends", factor),
               ends.to < ends.from ? "a number above 0 and below 1" : "a number above 1");
  }
  check_count(range, "factor", span / stride);
  std::vector<double> values;
  // a factor such as 0.1 is not exact: the end may be missed by rounding
  const auto last = static_cast<std::int64_t>(std::floor(span / stride + 1e-9));
  for (std::int64_t k = 0; k <= last; ++k) {
    values.push_back(ends.from * std::pow(factor, static_cast<double>(k)));
  }
  return values;
}

std::vector<double> by_step(const Section& range, const Ends& ends) {
  const double step = range.number("step", Sign::any);
  const double span = ends.to - ends.from;
  if (step == 0.0 || span * step < 0.0) {
    range.fail("step", fmt::format("impossible value ({}): the range never ends", step),
               span < 0.0 ? "a number below 0" : "a number above 0");
  }
  check_count(range, "step", span / step);
  std::vector<double> values;
  const auto last = static_cast<std::int64_t>(std::floor(span / step + 1e-9));
  for (std::int64_t k = 0; k <= last; ++k) values.push_back(ends.from + static_cast<double>(k) * step);
  return values;
}

}  // namespace

std::vector<Value> read_range(const Section& range) {
  const bool whole_ends = range.kind("from") == Value::Kind::integer && range.kind("to") == Value::Kind::integer;
  const Ends ends{range.number("from", Sign::any), range.number("to", Sign::any), whole_ends};
  if (!std::isfinite(ends.to - ends.from)) range.fail("to", "is too far from 'from'", "a shorter range");
  const int given = (range.has("points") ? 1 : 0) + (range.has("factor") ? 1 : 0) + (range.has("step") ? 1 : 0);
  if (given != 1) {
    range.fail("points", given == 0 ? "is missing" : "stands beside factor or step", "one of points, factor, step");
  }
  const std::vector<double> values = range.has("points")   ? by_points(range, ends)
                                     : range.has("factor") ? by_factor(range, ends)
                                                           : by_step(range, ends);
  range.finish();
  // integers stay integers unless factor or step says otherwise
  const bool fraction = range.has("step") && range.kind("step") != Value::Kind::integer;
  std::vector<Value> result;
  for (const double value : values) result.push_back(as_value(value, ends.whole && !fraction));
  return result;
}

}  // namespace iclflow
