#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "iclflow/experiment/section.hpp"
#include "iclflow/experiment/toml_text.hpp"
#include "iclflow/mesa/compression.hpp"
#include "iclflow/mesa/sequences.hpp"
#include "iclflow/trajectory/trajectory.hpp"

namespace iclflow {

/// One linear layer whose first channel becomes a gradient step from Phi_0 = phi I (less Phi_0 s_t, which the empty
/// channel does not hold): rate G_t s_t + minus_rate_phi M_{t+1-} s_t, in one head (theory: eq:constructed-step). Clip
/// and mask are those of `shape`.
[[nodiscard]] StackModelWeights constructed_step(const StackShape& shape, double rate, double minus_rate_phi);

/// Layers that precondition the query, z <- z - M_t (a_k z + b_k s_t) from z = s_t, in the second channel, and a last
/// one that predicts rate G_t z (theory: eq:constructed-steps). Throws std::invalid_argument when a and b differ in
/// length or the shape masks the second channel.
[[nodiscard]] StackModelWeights constructed_steps(const StackShape& shape, double rate, const std::vector<double>& a,
                                                  const std::vector<double>& b);

/// The step that a trained layer takes, read from its products; summed over heads, the only identifiable form
/// (theory: eq:recovered-step).
struct RecoveredStep {
  double rate = 0.0;            ///< eta
  double minus_rate_phi = 0.0;  ///< -eta phi, Phi_0 = phi I
  /// The same with what the blocks (3,3) and (4,4) of key_query add to M_t s_t when W* is orthogonal
  /// (theory: eq:effective-step).
  double effective_minus_rate_phi = 0.0;
};
/// Throws std::invalid_argument unless the stack is one linear layer of constructed tokens.
[[nodiscard]] RecoveredStep recover_step(const StackModelWeights& trained);

/// [one_step]: how far a trained layer is a gradient step.
struct OneStepPlan {
  std::size_t sequences = 1000;
  std::uint64_t seed = 1;
};
[[nodiscard]] std::optional<OneStepPlan> read_one_step(const Section& root);
void resolve(const OneStepPlan& plan, TomlText& text);

/// On sequences 0, 1, ... of (seed, Stream::evaluation):
/// eta, minus_eta_phi, effective_minus_eta_phi; heads: [{eta, minus_eta_phi, key_query, output_value}] (4 x 4 means of
/// block diagonals); losses: {trained, constructed, effective, compressed, best_step, best_step_from_phi, zero}, each
/// {loss, standard_error}, the best steps with {eta} and {eta, minus_eta_phi}; sparsity: {key_query_outside,
/// output_value_outside} (share of the squared Frobenius norm outside of the expected blocks),
/// {largest_other_key_query, largest_other_output_value} (block means relative to the expected ones'),
/// {key_query_from_identity} (relative Frobenius distance of the expected block from a multiple of I);
/// cosines with the constructed step, and effective_cosines with the effective one: {predictions, sensitivities} (of
/// f_t; of the derivative of f_T by the states), each {mean, standard_error}. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json one_step(const OneStepPlan& plan, const SequenceProblem& problem,
                                              const StackModelWeights& trained, int threads,
                                              const std::function<bool()>& interrupted);

/// The numbers of a training's seeds: means with *_standard_error over seeds, named eta, minus_eta_phi, trained_loss,
/// constructed_loss, ..., best_step_eta, key_query_outside, ..., predictions_cosine, sensitivities_cosine; and
/// by_seed: [{seed, ...}] as one_step() reports them. Null when interrupted.
[[nodiscard]] nlohmann::ordered_json one_step_of_training(const OneStepPlan& plan, const SequenceProblem& problem,
                                                          const StackShape& shape, const DynamicsResult& result,
                                                          int threads, const std::function<bool()>& interrupted);

}  // namespace iclflow
