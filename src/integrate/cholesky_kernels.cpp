#include "cholesky_kernels.hpp"

#include <algorithm>
#include <cmath>

// Compiled once for every instruction set; Highway picks the best one when the program runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "integrate/cholesky_kernels.cpp"
#include <hwy/foreach_target.h>
// clang-format keeps this after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace iclflow {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t block = 8;  // rows that are eliminated at once, and the widest vector: rows are multiples of it
using Tag = hn::CappedTag<double, block>;
using V = hn::Vec<Tag>;

/// y += factor x over columns from a multiple of `block` to the end of the row.
HWY_INLINE void add_scaled(const double* x, double factor, std::size_t begin, std::size_t end, double* y) {
  const Tag d;
  const V f = hn::Set(d, factor);
  for (std::size_t c = begin; c < end; c += hn::Lanes(d)) {
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, x + c), hn::LoadU(d, y + c)), d, y + c);
  }
}

/// rows i .. i+3 -= (columns i .. i+3 of the block)^T (block), for the columns from the multiple of `block` below i.
HWY_INLINE void eliminate(const double* top, std::size_t i, std::size_t stride, double* rows) {
  const Tag d;
  double* r = rows + i * stride;
  for (std::size_t c = i / block * block; c < stride; c += hn::Lanes(d)) {
    V s0 = hn::LoadU(d, r + c);
    V s1 = hn::LoadU(d, r + stride + c);
    V s2 = hn::LoadU(d, r + 2 * stride + c);
    V s3 = hn::LoadU(d, r + 3 * stride + c);
    for (std::size_t q = 0; q < block; ++q) {
      const double* u = top + q * stride;
      const V x = hn::LoadU(d, u + c);
      s0 = hn::NegMulAdd(hn::Set(d, u[i]), x, s0);
      s1 = hn::NegMulAdd(hn::Set(d, u[i + 1]), x, s1);
      s2 = hn::NegMulAdd(hn::Set(d, u[i + 2]), x, s2);
      s3 = hn::NegMulAdd(hn::Set(d, u[i + 3]), x, s3);
    }
    hn::StoreU(s0, d, r + c);
    hn::StoreU(s1, d, r + stride + c);
    hn::StoreU(s2, d, r + 2 * stride + c);
    hn::StoreU(s3, d, r + 3 * stride + c);
  }
}

/// Upper triangle of rows, a square matrix whose size is a multiple of `block`.
bool factor_rows(double* rows, std::size_t size) {
  for (std::size_t j = 0; j < size; j += block) {
    for (std::size_t q = j; q < j + block; ++q) {
      double* row = rows + q * size;
      if (!(row[q] > 0.0)) return false;
      const double scale = 1.0 / std::sqrt(row[q]);
      for (std::size_t c = q; c < size; ++c) row[c] *= scale;
      for (std::size_t p = q + 1; p < j + block; ++p) add_scaled(row, -row[p], j, size, rows + p * size);
    }
    for (std::size_t i = j + block; i < size; i += 4) eliminate(rows + j * size, i, size, rows);
  }
  return true;
}

void solve_rows(const double* rows, std::size_t size, double* x) {
  const Tag d;
  for (std::size_t j = 0; j < size; ++j) {
    const double* row = rows + j * size;
    x[j] /= row[j];
    const std::size_t next = (j / block + 1) * block;
    for (std::size_t c = j + 1; c < next; ++c) x[c] -= row[c] * x[j];
    add_scaled(row, -x[j], next, size, x);
  }
  for (std::size_t j = size; j-- > 0;) {
    const double* row = rows + j * size;
    const std::size_t next = (j / block + 1) * block;
    V sum = hn::Zero(d);
    for (std::size_t c = next; c < size; c += hn::Lanes(d)) {
      sum = hn::MulAdd(hn::LoadU(d, row + c), hn::LoadU(d, x + c), sum);
    }
    double rest = x[j] - hn::GetLane(hn::SumOfLanes(d, sum));
    for (std::size_t c = j + 1; c < next; ++c) rest -= row[c] * x[c];
    x[j] = rest / row[j];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace iclflow
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace iclflow {

HWY_EXPORT(factor_rows);
HWY_EXPORT(solve_rows);

bool Cholesky::factor(const Eigen::MatrixXd& matrix, double shift) {
  size_ = matrix.rows();
  const Eigen::Index padded = (size_ + 7) / 8 * 8;
  rows_.setIdentity(padded, padded);
  rows_.topLeftCorner(size_, size_) = matrix.transpose();  // symmetric: the copy then runs along memory
  rows_.diagonal().head(size_).array() += shift;
  padded_.setZero(padded);
  return HWY_DYNAMIC_DISPATCH(factor_rows)(rows_.data(), static_cast<std::size_t>(padded));
}

void Cholesky::solve(const Eigen::VectorXd& b, Eigen::VectorXd& x) {
  padded_.head(size_) = b;
  padded_.tail(padded_.size() - size_).setZero();
  HWY_DYNAMIC_DISPATCH(solve_rows)(rows_.data(), static_cast<std::size_t>(rows_.rows()), padded_.data());
  x = padded_.head(size_);
}

}  // namespace iclflow
#endif  // HWY_ONCE
