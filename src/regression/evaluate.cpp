#include "iclflow/regression/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "iclflow/attention/token_estimator.hpp"

namespace iclflow {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

[[noreturn]] void fail(const std::string& pointer, const std::string& what) { throw JsonError(pointer, what); }

const Json& member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end()) fail("/" + key, "missing");
  return *found;
}

double number(const Json& value, const std::string& pointer) {
  if (!value.is_number()) fail(pointer, fmt::format("a number is wanted, got {}", value.type_name()));
  const auto result = value.get<double>();
  if (!std::isfinite(result)) fail(pointer, "a finite number is wanted");
  return result;
}

const Json& array(const Json& value, const std::string& pointer) {
  if (!value.is_array() || value.empty())
    fail(pointer,
         fmt::format("a non-empty array is wanted, got {}", value.is_array() ? "an empty one" : value.type_name()));
  return value;
}

/// rows and columns: what is demanded; -1 takes what is there.
Matrix matrix(const Json& value, const std::string& pointer, Eigen::Index rows, Eigen::Index columns) {
  const auto found_rows = static_cast<Eigen::Index>(array(value, pointer).size());
  if (rows >= 0 && found_rows != rows) fail(pointer, fmt::format("{} rows wanted, got {}", rows, found_rows));
  Matrix result;
  for (Eigen::Index r = 0; r < found_rows; ++r) {
    const std::string row_pointer = fmt::format("{}/{}", pointer, r);
    const Json& row = array(value[static_cast<std::size_t>(r)], row_pointer);
    const auto found_columns = static_cast<Eigen::Index>(row.size());
    if (r == 0) {
      if (columns >= 0 && found_columns != columns)
        fail(row_pointer, fmt::format("{} numbers wanted, got {}", columns, found_columns));
      result.resize(found_rows, found_columns);
    } else if (found_columns != result.cols()) {
      fail(row_pointer, fmt::format("{} numbers wanted, got {} (ragged matrix)", result.cols(), found_columns));
    }
    for (Eigen::Index c = 0; c < found_columns; ++c) {
      result(r, c) = number(row[static_cast<std::size_t>(c)], fmt::format("{}/{}", row_pointer, c));
    }
  }
  return result;
}

/// A stack of equal matrices, one per head or context.
std::vector<Matrix> stack(const Json& document, const std::string& key, Eigen::Index count, Eigen::Index rows,
                          Eigen::Index columns) {
  const std::string pointer = "/" + key;
  const Json& entries = array(member(document, key), pointer);
  const auto found = static_cast<Eigen::Index>(entries.size());
  if (count >= 0 && found != count) fail(pointer, fmt::format("{} matrices wanted, got {}", count, found));
  std::vector<Matrix> result;
  for (Eigen::Index k = 0; k < found; ++k) {
    result.push_back(matrix(entries[static_cast<std::size_t>(k)], fmt::format("{}/{}", pointer, k), rows, columns));
    rows = result.front().rows();
    columns = result.front().cols();
  }
  return result;
}

/// A key as part of a JSON pointer (~ and / written as ~0 and ~1) that is shown: short, without control characters.
std::string pointer_token(const std::string& key) {
  std::string token;
  for (const char c : key.substr(0, 60)) {
    if (c == '~' || c == '/') {
      token += c == '~' ? "~0" : "~1";
    } else {
      token += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return key.size() > 60 ? token + "..." : token;
}

void only_known(const Json& document, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : document.items()) {
    bool allowed = false;
    for (const std::string_view name : known) allowed = allowed || name == key;
    if (!allowed) fail("/" + pointer_token(key), fmt::format("unknown key; allowed: {}", fmt::join(known, ", ")));
  }
}

Parametrisation parametrisation(const Json& document) {
  if (!document.is_object()) fail("", fmt::format("an object is wanted, got {}", document.type_name()));
  const Json& name = member(document, "parametrisation");
  if (name == "merged") return Parametrisation::merged;
  if (name == "split") return Parametrisation::split;
  fail("/parametrisation", "\"merged\" or \"split\" wanted");
}

OrderedJson to_json(const Matrix& m) {
  OrderedJson rows = OrderedJson::array();
  for (Eigen::Index r = 0; r < m.rows(); ++r) rows.push_back(std::vector<double>(m.row(r).begin(), m.row(r).end()));
  return rows;
}

OrderedJson weights_to_json(const WeightLayout& layout, const Eigen::VectorXd& values) {
  OrderedJson result = OrderedJson::object();
  for (int h = 0; h < layout.heads; ++h) {
    const HeadView<const double> at = head(layout, values, h);
    if (layout.parametrisation == Parametrisation::merged) {
      result["W"].push_back(to_json(at.w));
      result["U"].push_back(to_json(at.u));
    } else {
      result["K"].push_back(to_json(at.k));
      result["Q"].push_back(to_json(at.q));
      result["V"].push_back(to_json(at.v));
      result["O"].push_back(to_json(at.o));
    }
  }
  return result;
}

}  // namespace

NamedWeights read_weights(const Json& document) {
  NamedWeights result;
  WeightLayout& layout = result.layout;
  layout.parametrisation = parametrisation(document);
  if (layout.parametrisation == Parametrisation::merged) {
    const std::vector<Matrix> w = stack(document, "W", -1, -1, -1);
    if (w[0].rows() != w[0].cols()) fail("/W/0", "a square matrix is wanted");
    const std::vector<Matrix> u = stack(document, "U", static_cast<Eigen::Index>(w.size()), -1, -1);
    if (u[0].rows() != u[0].cols()) fail("/U/0", "a square matrix is wanted");
    layout.heads = static_cast<int>(w.size());
    layout.dimension = static_cast<int>(w[0].rows());
    layout.tasks = static_cast<int>(u[0].rows());
    layout.embedding = layout.dimension + layout.tasks;
    result.values.resize(layout.size());
    for (int h = 0; h < layout.heads; ++h) {
      HeadView<double> to = head(layout, result.values, h);
      to.w = w[static_cast<std::size_t>(h)];
      to.u = u[static_cast<std::size_t>(h)];
    }
    return result;
  }
  layout.score_factor = number(member(document, "score_scale"), "/score_scale");
  const std::vector<Matrix> k = stack(document, "K", -1, -1, -1);
  const auto heads = static_cast<Eigen::Index>(k.size());
  const Eigen::Index e = k[0].rows();
  const Eigen::Index n = k[0].cols();
  const std::vector<Matrix> q = stack(document, "Q", heads, e, n);
  const std::vector<Matrix> v = stack(document, "V", heads, e, n);
  const std::vector<Matrix> o = stack(document, "O", heads, -1, e);
  layout.heads = static_cast<int>(heads);
  layout.embedding = static_cast<int>(e);
  layout.tasks = static_cast<int>(o[0].rows());
  layout.dimension = static_cast<int>(n) - layout.tasks;
  if (layout.dimension < 1)
    fail("/K/0/0", fmt::format("rows of d + I numbers wanted: more than I = {}, got {}", layout.tasks, n));
  result.values.resize(layout.size());
  for (int h = 0; h < layout.heads; ++h) {
    HeadView<double> to = head(layout, result.values, h);
    to.k = k[static_cast<std::size_t>(h)];
    to.q = q[static_cast<std::size_t>(h)];
    to.v = v[static_cast<std::size_t>(h)];
    to.o = o[static_cast<std::size_t>(h)];
  }
  return result;
}

OrderedJson evaluate(const Json& document) {
  if (parametrisation(document) == Parametrisation::merged) {
    only_known(document, {"parametrisation", "W", "U", "X", "Y", "q", "target"});
  } else {
    only_known(document, {"parametrisation", "score_scale", "K", "Q", "V", "O", "X", "Y", "q", "target"});
  }
  const NamedWeights weights = read_weights(document);
  const WeightLayout& layout = weights.layout;
  const std::vector<Matrix> x = stack(document, "X", -1, layout.dimension, -1);
  const auto contexts = static_cast<Eigen::Index>(x.size());
  const Eigen::Index length = x[0].cols();
  const std::vector<Matrix> y = stack(document, "Y", contexts, layout.tasks, length);
  const Matrix q = matrix(member(document, "q"), "/q", contexts, layout.dimension);
  const Matrix target = matrix(member(document, "target"), "/target", contexts, layout.tasks);

  PackedWeights<double> packed(layout);
  packed.set(acting(layout, weights.values));
  PackedWeights<double> sum(layout);
  Context<double> context(static_cast<std::size_t>(layout.dimension), static_cast<std::size_t>(layout.tasks),
                          static_cast<std::size_t>(length));
  TokenPass<double> scratch(packed, context.length, padded(context.dimension));
  double loss = 0.0;
  for (Eigen::Index b = 0; b < contexts; ++b) {
    for (Eigen::Index r = 0; r < layout.tokens(); ++r) {
      const Matrix& from = r < layout.dimension ? x[static_cast<std::size_t>(b)] : y[static_cast<std::size_t>(b)];
      const Eigen::Index row = r < layout.dimension ? r : r - layout.dimension;
      std::copy_n(from.row(row).data(), length, context.tokens + static_cast<std::size_t>(r) * context.stride);
    }
    std::copy_n(q.row(b).data(), layout.dimension, context.query.get());
    std::copy_n(target.row(b).data(), layout.tasks, context.target.get());
    loss += scratch(packed, context, sum);
  }
  const auto count = static_cast<double>(contexts);
  ActingWeights slope = sum.unpacked();
  slope *= 1.0 / count;
  Eigen::VectorXd gradient;
  pull_back(layout, weights.values, slope, gradient);
  if (!std::isfinite(loss) || !gradient.allFinite()) fail("", "loss or gradient overflows double precision");
  OrderedJson result;
  result["loss"] = loss / count;
  result["gradient"] = weights_to_json(layout, gradient);
  return result;
}

}  // namespace iclflow
