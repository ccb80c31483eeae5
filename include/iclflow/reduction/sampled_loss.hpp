#pragma once

#include <cstdint>
#include <memory>

#include "iclflow/spectral/population_loss.hpp"

namespace iclflow {

struct SampledOptions {
  int contexts = 4000;     ///< at least SampledLoss::smallest
  std::uint64_t seed = 0;  ///< names the set of contexts
  int threads = 1;         ///< never changes a bit of the result
};

/// Closure C2, "sampled": the exact population loss on the spectral manifold at every L and d, by common random
/// numbers. It is the loss of the full model (attention/score_space.hpp) at embedded weights, in the basis that does
/// not depend on the weights: one direction of the query per coordinate. A context is chi_k = |q_k|, the length of the
/// query's part in the directions of coordinate k, and Z, L x K normals:
///
///   s^h = sum_k omega_hk chi_k Z_k,  P = softmax,  m = Z^T P,  C = P^T P,  r_k = chi_k - sum_h mu_hi m_kh,
///   ell = (1/2) mean of sum_i a_i { sum_{k in J_i} r_k^2 + tau_i mu_i^T C mu_i } + sigma^2 sum_i mu_i^T C mu_i.
///
/// Gradient and Hessian are the exact derivatives of that mean, so a flow on it is a smooth differential equation.
/// Contexts come in 32 groups; in each the lengths chi_k are a Latin hypercube, which removes most of the noise that
/// the length of the query makes, and the spread of the groups' means gives the standard error.
///
/// A gradient costs contexts x L x K x H operations; nothing is allocated but in the first calls. Contexts are kept
/// in memory up to 64 MB, else drawn anew each time. Deterministic in (seed, contexts). Unlike other closures an object
/// must not be used by two threads at once: it has threads of its own.
/// Source: theory/03-population-loss.md.
class SampledLoss final : public PopulationLoss {
 public:
  static constexpr int smallest = 64;  ///< contexts: two in each group

  /// Throws std::invalid_argument for fewer than `smallest` contexts.
  SampledLoss(const Problem& problem, const Coordinates& coordinates, const SampledOptions& options);
  ~SampledLoss() override;

  [[nodiscard]] double value(const Eigen::VectorXd& state) const override;
  void gradient(const Eigen::VectorXd& state, Eigen::VectorXd& gradient) const override;
  void hessian_vector(const Eigen::VectorXd& state, const Eigen::VectorXd& direction,
                      Eigen::VectorXd& product) const override;
  [[nodiscard]] Eigen::VectorXd by_task(const Eigen::VectorXd& state) const override;
  [[nodiscard]] std::optional<double> standard_error(const Eigen::VectorXd& state) const override;

  /// One context: chi (K) and Z (K x stride, stride = padded(L)).
  struct Draw {
    Eigen::VectorXd chi;
    Matrix coordinates;
  };
  [[nodiscard]] Draw draw(int context) const;

 private:
  class Contexts;
  class Worker;
  struct Estimate;
  [[nodiscard]] const Estimate& estimate(const Eigen::VectorXd& state) const;

  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace iclflow
