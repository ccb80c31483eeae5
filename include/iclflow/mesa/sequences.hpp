#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "iclflow/random/stream.hpp"

namespace iclflow {

/// How states follow each other: h_{t+1} = W* f*(h_t) + noise, s_t = C* h_t + observation noise.
enum class SequenceKind : std::uint8_t {
  orthogonal,   ///< W* Haar-random orthogonal, fresh for each sequence; s = h
  partial,      ///< the same in hidden_dimension dimensions, C* ~ N(0, 0.5^2) entries, fresh for each sequence
  nonlinear,    ///< f*(h) = B GELU(A h) / |B GELU(A h)|, A and B shared by all sequences of a teacher_seed
  contracting,  ///< W* Gaussian with the moduli of its eigenvalues redrawn in [0.3, 0.9]; every h after the first
                ///< clipped to [-2, 2]
  fixed         ///< one orthogonal W* for all sequences of a teacher_seed
};
enum class InitialLaw : std::uint8_t { uniform, normal };

/// Distribution of the sequences s_1 .. s_{length+1}; the models see the first `length` and predict the last `length`.
struct SequenceProblem {
  SequenceKind kind = SequenceKind::orthogonal;
  int state_dimension = 10;   ///< n, of what is observed
  int hidden_dimension = 10;  ///< of h; equal to n except where partially observed (the paper: 15 against 5)
  int length = 50;            ///< number of predicted targets
  double noise_deviation = 0.01;
  double observation_noise_deviation = 0.0;
  InitialLaw initial = InitialLaw::uniform;  ///< h_1 ~ U(-1, 1) each, or N(0, 1)
  int teacher_width = 300;                   ///< hidden units of f*
  std::uint64_t teacher_seed = 1;            ///< of W* (fixed) and of A, B (nonlinear)
};

/// Many sequences side by side in memory: states[(sequence * (length + 1) + t) * n + i], t = 0 .. length.
struct SequenceSet {
  std::size_t count = 0;
  int length = 0;     ///< number of predicted targets; one state more is held
  int dimension = 0;  ///< n
  std::vector<double> states;

  [[nodiscard]] const double* state(std::size_t sequence, int t) const {
    return states.data() + (sequence * static_cast<std::size_t>(length + 1) + static_cast<std::size_t>(t)) *
                               static_cast<std::size_t>(dimension);
  }
};

/// Sequences first .. first + count - 1 of (seed, stream, step): each is keyed by its own number, so the set does not
/// depend on who draws it or in which pieces.
[[nodiscard]] SequenceSet draw_sequences(const SequenceProblem& problem, std::uint64_t seed, Stream stream,
                                         std::uint32_t step, std::size_t first, std::size_t count);

}  // namespace iclflow
