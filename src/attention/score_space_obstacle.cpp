#include <fmt/format.h>

#include "iclflow/attention/score_space_gradient.hpp"

namespace iclflow {

namespace {

template <typename Left, typename Right>
std::string obstacle(const char* product, int head, const Left& left, const Right& right) {
  const double size = (left * right).norm();
  // Rounding of a product that vanishes, and of weights that were computed to vanish in it.
  constexpr double rounding = 1e-12;
  if (size <= rounding * left.norm() * right.norm()) return {};
  return fmt::format("{} of head {} is not zero (its size is {:.3g})", product, head, size);
}

}  // namespace

std::optional<std::string> score_space_obstacle(const WeightLayout& layout, const Eigen::VectorXd& weights) {
  if (layout.parametrisation == Parametrisation::merged) return {};
  const int d = layout.dimension;
  const int tasks = layout.tasks;
  for (int h = 0; h < layout.heads; ++h) {
    // K_Y^T Q_X = K_Y^T K_X = 0,  O V_X = V_Y^T V_X = 0                     theory: eq:score-space-conditions
    const HeadView<const double> at = head(layout, weights, h);
    const Matrix key_y = at.k.rightCols(tasks).transpose();
    const Matrix value_x = at.v.leftCols(d);
    for (const std::string& words :
         {obstacle("K_Y^T Q_X", h, key_y, Matrix(at.q.leftCols(d))),
          obstacle("K_Y^T K_X", h, key_y, Matrix(at.k.leftCols(d))), obstacle("O V_X", h, Matrix(at.o), value_x),
          obstacle("V_Y^T V_X", h, Matrix(at.v.rightCols(tasks).transpose()), value_x)}) {
      if (!words.empty()) return words;
    }
  }
  return {};
}

}  // namespace iclflow
