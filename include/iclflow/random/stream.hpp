#pragma once

#include <cstdint>

namespace iclflow {

/// What a sequence of random numbers is for. Two purposes never share numbers.
enum class Stream : std::uint32_t {
  training = 1,
  evaluation = 2,
  initial = 3,
  rotation = 4,
  closure = 5,
  score_space = 6,
  sequences = 7,
  teacher = 8,
  probes = 9,
  few_shot = 10
};

/// Names one sequence of the counter-based generator Philox4x32-10 (Salmon et al. 2011): the seed is the key,
/// (stream, step, context) and the block number are the counter, so sequences never overlap and
/// any of them can be drawn by any thread at any time.
struct StreamKey {
  std::uint64_t seed = 0;
  Stream stream = Stream::training;
  std::uint32_t step = 0;
  std::uint32_t context = 0;
};

/// Standard normals one at a time, for the few that starts and rotations need: textbook Box-Muller on 52 bit uniforms,
/// cosine and sine of block 0, then of block 1, ... Not the numbers of fill_normals, which takes the angle apart in
/// another way.
class NormalStream {
 public:
  explicit NormalStream(const StreamKey& key) : key_(key) {}
  double operator()();

 private:
  StreamKey key_;
  std::uint32_t block_ = 0;
  bool has_spare_ = false;
  double spare_ = 0.0;
};

}  // namespace iclflow
