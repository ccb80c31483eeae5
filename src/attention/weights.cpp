#include "iclflow/attention/weights.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace iclflow {

WeightLayout WeightLayout::of(const Problem& problem) {
  return {problem.parametrisation, problem.heads,       problem.dimension(),
          problem.tasks(),         problem.embedding(), problem.score_factor()};
}

Eigen::Index WeightLayout::head_size() const {
  const Eigen::Index d = dimension;
  const Eigen::Index i = tasks;
  const Eigen::Index e = embedding;
  return parametrisation == Parametrisation::merged ? d * d + i * i : 3 * e * (d + i) + i * e;
}

namespace {

template <typename Scalar, typename Flat>
HeadView<Scalar> view(const WeightLayout& layout, Flat& weights, int h) {
  Scalar* at = weights.data() + h * layout.head_size();
  const auto take = [&](Eigen::Index rows, Eigen::Index columns) {
    typename HeadView<Scalar>::Map map(at, rows, columns);
    at += rows * columns;
    return map;
  };
  const bool merged = layout.parametrisation == Parametrisation::merged;
  const Eigen::Index d = merged ? layout.dimension : 0;
  const Eigen::Index i = merged ? layout.tasks : 0;
  const Eigen::Index e = merged ? 0 : layout.embedding;
  const Eigen::Index n = merged ? 0 : layout.tokens();
  const Eigen::Index outputs = merged ? 0 : layout.tasks;
  // Braced initialisation evaluates left to right, in the order of the layout.
  return HeadView<Scalar>{take(d, d), take(i, i), take(e, n), take(e, n), take(e, n), take(outputs, e)};
}

}  // namespace

HeadView<const double> head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h) {
  return view<const double>(layout, weights, h);
}

HeadView<double> head(const WeightLayout& layout, Eigen::VectorXd& weights, int h) {
  return view<double>(layout, weights, h);
}

std::string entry_name(const WeightLayout& layout, Eigen::Index entry) {
  const bool merged = layout.parametrisation == Parametrisation::merged;
  const Eigen::Index d = layout.dimension;
  const Eigen::Index i = layout.tasks;
  const Eigen::Index e = layout.embedding;
  struct Block {
    char name;
    Eigen::Index rows, columns;
  };
  const std::vector<Block> blocks =
      merged ? std::vector<Block>{{'W', d, d}, {'U', i, i}}
             : std::vector<Block>{{'K', e, d + i}, {'Q', e, d + i}, {'V', e, d + i}, {'O', i, e}};
  Eigen::Index at = entry % layout.head_size();
  for (const Block& block : blocks) {
    if (at < block.rows * block.columns) {
      return fmt::format("{}[{}]({},{})", block.name, entry / layout.head_size(), at / block.columns,
                         at % block.columns);
    }
    at -= block.rows * block.columns;
  }
  throw std::out_of_range("no such weight");
}

ActingWeights ActingWeights::zero(const WeightLayout& layout) {
  const auto heads = static_cast<std::size_t>(layout.heads);
  return {std::vector<Matrix>(heads, Matrix::Zero(layout.tokens(), layout.dimension)),
          std::vector<Matrix>(heads, Matrix::Zero(layout.tasks, layout.tokens()))};
}

ActingWeights& ActingWeights::operator*=(double factor) {
  for (Matrix& block : key_query) block *= factor;
  for (Matrix& block : output_value) block *= factor;
  return *this;
}

void acting_of_head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h, ActingWeights& result) {
  const int d = layout.dimension;
  const HeadView<const double> at = head(layout, weights, h);
  Matrix& key_query = result.key_query[static_cast<std::size_t>(h)];
  Matrix& output_value = result.output_value[static_cast<std::size_t>(h)];
  if (layout.parametrisation == Parametrisation::merged) {
    key_query.topRows(d) = at.w;
    output_value.rightCols(layout.tasks) = at.u;
  } else {
    // M = s_w K^T Q_X,  A = O V                                             theory: eq:prediction
    key_query.noalias() = layout.score_factor * at.k.transpose() * at.q.leftCols(d);
    output_value.noalias() = at.o * at.v;
  }
}

ActingWeights acting(const WeightLayout& layout, const Eigen::VectorXd& weights) {
  ActingWeights result = ActingWeights::zero(layout);
  for (int h = 0; h < layout.heads; ++h) acting_of_head(layout, weights, h, result);
  return result;
}

void pull_back_head(const WeightLayout& layout, const Eigen::VectorXd& weights, int h,
                    const ActingWeights& acting_gradient, Eigen::VectorXd& gradient) {
  const int d = layout.dimension;
  const HeadView<const double> at = head(layout, weights, h);
  HeadView<double> to = head(layout, gradient, h);
  const Matrix& key_query = acting_gradient.key_query[static_cast<std::size_t>(h)];
  const Matrix& output_value = acting_gradient.output_value[static_cast<std::size_t>(h)];
  if (layout.parametrisation == Parametrisation::merged) {
    to.w = key_query.topRows(d);
    to.u = output_value.rightCols(layout.tasks);
    return;
  }
  // dK = s_w Q_X dM^T,  dQ_X = s_w K dM,  dQ_Y = 0,  dO = dA V^T,  dV = O^T dA        theory: eq:chain-rule
  to.k.noalias() = layout.score_factor * at.q.leftCols(d) * key_query.transpose();
  to.q.leftCols(d).noalias() = layout.score_factor * at.k * key_query;
  to.q.rightCols(layout.tasks).setZero();
  to.o.noalias() = output_value * at.v.transpose();
  to.v.noalias() = at.o.transpose() * output_value;
}

void pull_back(const WeightLayout& layout, const Eigen::VectorXd& weights, const ActingWeights& acting_gradient,
               Eigen::VectorXd& gradient) {
  gradient.resize(layout.size());
  for (int h = 0; h < layout.heads; ++h) pull_back_head(layout, weights, h, acting_gradient, gradient);
}

}  // namespace iclflow
