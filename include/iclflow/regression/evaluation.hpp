#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iclflow/attention/weights.hpp"
#include "iclflow/experiment/system.hpp"
#include "iclflow/plots/evaluation_figure.hpp"
#include "iclflow/reduction/closures.hpp"
#include "iclflow/regression/evaluation_section.hpp"

namespace iclflow {

/// Final weights of one dynamics.
struct EvaluatedWeights {
  std::string name;
  std::vector<ActingWeights> members;  ///< one per seed
  std::optional<Closure> closure{};    ///< of the prediction at other lengths
  SpectralState spectral{};            ///< at which the closure is taken, omega H x d_x
};

/// `evaluation` of summary.json, the training law first, by length, estimators before dynamics:
/// [{context_length, estimator, shift (absent: the training law), loss, standard_error, prediction, and with several
/// seeds contexts_error and seeds_error, whose root sum of squares standard_error is}].
/// loss: null where it has no mean or the law does not exist; standard_error: null where there is no variance.
/// prediction: closed form, or the closure at that length, under the training law; else null.
/// prediction_standard_error: of a closure that samples.
[[nodiscard]] Evaluated evaluate_weights(const Problem& problem, const EvaluationPlan& plan,
                                         const std::vector<EvaluatedWeights>& weights,
                                         const EvaluationControl& control);

/// The figure of `evaluation`; one panel per law.
[[nodiscard]] EvaluationFigure evaluation_figure(const nlohmann::ordered_json& evaluation, const EvaluationPlan& plan,
                                                 const std::string& title, const Problem& problem,
                                                 const std::vector<std::string>& dynamics);

}  // namespace iclflow
