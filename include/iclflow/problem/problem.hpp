#pragma once

#include <cstdint>
#include <vector>

namespace iclflow {

enum class ResponseScale { inverse_sqrt_dimension, unit };
enum class ScoreScale { unit, inverse_sqrt_embedding };
enum class Parametrisation { merged, split };
enum class Rotation { identity, random };

/// Multi-task in-context linear regression read by one layer of multi-head softmax attention.
///
/// d_x covariates in I disjoint blocks J_1..J_I of sizes d_i, one response per task:
///   y_l = s_y G^T x_l + eps_l,   G = Phi Ghat Psi^T,   Ghat_ji ~ N(0, lambda_i) for j in J_i, else 0.
/// Loss everywhere: ell = (1/2) E |yhat - s_y G^T q|^2, summed over tasks; time: d theta / dt = -grad ell.
/// Source: theory/01-problem.md; Chen, Sheen, Wang, Yang 2024, arXiv:2402.19442, section 2.
struct Problem {
  int heads = 1;                             ///< H
  std::vector<int> task_dimensions{1};       ///< d_i, I entries
  int context_length = 1;                    ///< L
  double noise_variance = 0.0;               ///< sigma^2 of eps
  std::vector<double> signal_variance{1.0};  ///< lambda_i, I entries
  ResponseScale response_scale = ResponseScale::inverse_sqrt_dimension;
  Parametrisation parametrisation = Parametrisation::split;
  ScoreScale score_scale = ScoreScale::unit;  ///< split only
  Rotation rotation = Rotation::identity;     ///< Phi, Psi
  std::uint64_t rotation_seed = 0;

  [[nodiscard]] int tasks() const { return static_cast<int>(task_dimensions.size()); }  ///< I = d_y
  [[nodiscard]] int dimension() const;                                                  ///< d_x
  [[nodiscard]] int embedding() const { return dimension() + tasks(); }                 ///< e = d_x + d_y
  [[nodiscard]] int block_begin(int task) const;                                        ///< first coordinate of J_i
  [[nodiscard]] std::vector<int> task_of_coordinate() const;

  [[nodiscard]] double response_factor() const;       ///< s_y
  [[nodiscard]] double score_factor() const;          ///< s_w; 1 when merged
  [[nodiscard]] double signal_power(int task) const;  ///< P_i = s_y^2 lambda_i d_i
  [[nodiscard]] double noise_factor(int task) const;  ///< phi_i = 1 + sigma^2 / P_i
};

/// Throws std::invalid_argument with one sentence naming the field if the problem cannot be meant:
/// sizes below 1 or beyond what memory holds, non-finite or non-positive variances, I entries expected.
void validate(const Problem& problem);

}  // namespace iclflow
