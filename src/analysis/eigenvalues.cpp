#include "iclflow/analysis/eigenvalues.hpp"

#include <Spectra/SymEigsSolver.h>

#include <Eigen/QR>
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace iclflow {

namespace {

using Apply = std::function<void(const Eigen::VectorXd&, Eigen::VectorXd&)>;

/// The operator with the columns of `found` moved down by `shift`, in the form that Spectra asks for.
class Deflated {
 public:
  using Scalar = double;

  Deflated(Eigen::Index size, const Apply& apply, int& applications)
      : size_(size), apply_(apply), applications_(applications), found_(size, 0) {}

  [[nodiscard]] Eigen::Index rows() const { return size_; }
  [[nodiscard]] Eigen::Index cols() const { return size_; }
  void perform_op(const double* in, double* out) const {
    const Eigen::VectorXd direction = Eigen::Map<const Eigen::VectorXd>(in, size_);
    Eigen::VectorXd image;
    apply_(direction, image);
    ++applications_;
    if (found_.cols() > 0) image -= shift_ * (found_ * (found_.transpose() * direction));
    Eigen::Map<Eigen::VectorXd>(out, size_) = image;
  }

  void deflate(const Eigen::MatrixXd& vectors, double shift) {
    shift_ = shift;
    const Eigen::Index before = found_.cols();
    found_.conservativeResize(size_, before + vectors.cols());
    found_.rightCols(vectors.cols()) = vectors;
    // Copies found later are orthogonal to the earlier ones only up to the tolerance.
    for (Eigen::Index k = before; k < found_.cols(); ++k) {
      for (int pass = 0; pass < 2; ++pass) {
        found_.col(k) -= found_.leftCols(k) * (found_.leftCols(k).transpose() * found_.col(k)).eval();
        found_.col(k).normalize();
      }
    }
  }
  [[nodiscard]] const Eigen::MatrixXd& found() const { return found_; }

 private:
  Eigen::Index size_;
  const Apply& apply_;
  int& applications_;
  Eigen::MatrixXd found_;
  double shift_ = 0.0;
};

}  // namespace

Eigenpairs largest_eigenvalues(Eigen::Index size, const Apply& apply, Eigen::Index count, double tolerance) {
  if (count < 1 || count >= size) throw std::invalid_argument("the number of eigenvalues must be in 1 .. size - 1");
  Eigenpairs result;
  Deflated deflated(size, apply, result.applications);
  std::vector<double> values;
  while (true) {
    const Eigen::Index basis = std::min(size, std::max<Eigen::Index>(2 * count + 1, 24));
    Spectra::SymEigsSolver<Deflated> solver(deflated, count, basis);
    solver.init();
    solver.compute(Spectra::SortRule::LargestAlge, 300, tolerance);
    if (solver.info() != Spectra::CompInfo::Successful) {
      throw std::runtime_error("the largest eigenvalues were not found: Lanczos did not converge");
    }
    const Eigen::VectorXd& fresh = solver.eigenvalues();
    // Those of this pass that are above the count-th largest of all passes before.
    double level = -std::numeric_limits<double>::infinity();
    if (static_cast<Eigen::Index>(values.size()) >= count) {
      std::vector<double> sorted = values;
      std::sort(sorted.rbegin(), sorted.rend());
      level = sorted[static_cast<std::size_t>(count) - 1];
    }
    const double slack = 10.0 * tolerance * std::max(1e-300, std::abs(fresh(0)));
    Eigen::Index taken = 0;
    while (taken < count && fresh(taken) > level + slack) ++taken;
    if (taken == 0) break;
    const double spread = 2.0 * fresh.cwiseAbs().maxCoeff() + 1.0;
    for (Eigen::Index k = 0; k < taken; ++k) values.push_back(fresh(k));
    deflated.deflate(solver.eigenvectors().leftCols(taken), spread);
    if (deflated.found().cols() + count >= size) break;
  }
  std::vector<Eigen::Index> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](Eigen::Index a, Eigen::Index b) {
    return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
  });
  result.values.resize(count);
  result.vectors.resize(size, count);
  for (Eigen::Index k = 0; k < count; ++k) {
    const Eigen::Index from = order[static_cast<std::size_t>(k)];
    result.values(k) = values[static_cast<std::size_t>(from)];
    result.vectors.col(k) = deflated.found().col(from);
  }
  return result;
}

}  // namespace iclflow
