#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <initializer_list>

namespace iclflow {

/// A vector with its coefficient.
struct Term {
  double coefficient;
  const Eigen::VectorXd& vector;
};

/// out = sum of the terms (at most 8), in the instruction set of the machine; `out` may be one of them.
void combine(std::initializer_list<Term> terms, Eigen::VectorXd& out);

/// Sum of all entries: not finite where one of them is not, or where they overflow together.
[[nodiscard]] double entry_sum(const Eigen::VectorXd& v);

struct Norms {
  double largest;  ///< of |v_j / scale_j|; not finite where an entry is not
  double mean_square;
};
[[nodiscard]] Norms scaled_norms(const Eigen::VectorXd& v, const Eigen::VectorXd& scale);

}  // namespace iclflow
