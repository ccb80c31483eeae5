#pragma once

#include "iclflow/attention/weights.hpp"
#include "iclflow/problem/problem.hpp"
#include "iclflow/random/stream.hpp"

/// Small problems with nothing special about them, and dense weights.
namespace problems {

inline iclflow::Problem uneven(iclflow::Parametrisation parametrisation,
                               iclflow::Rotation rotation = iclflow::Rotation::identity) {
  iclflow::Problem p;
  p.heads = 3;
  p.task_dimensions = {2, 3};
  p.context_length = 13;
  p.noise_variance = 0.3;
  p.signal_variance = {1.0, 0.6};
  p.parametrisation = parametrisation;
  if (parametrisation == iclflow::Parametrisation::split) p.score_scale = iclflow::ScoreScale::inverse_sqrt_embedding;
  p.rotation = rotation;
  p.rotation_seed = 5;
  return p;
}

inline Eigen::VectorXd dense_weights(const iclflow::WeightLayout& layout, double scale, std::uint64_t seed) {
  iclflow::NormalStream normal({seed, iclflow::Stream::initial, 77, 0});
  Eigen::VectorXd weights(layout.size());
  for (double& entry : weights) entry = scale * normal();
  return weights;
}

}  // namespace problems
