#include "training_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace iclflow {

namespace {

constexpr double largest_model = 1e8;      // 5 GB: weights, moments and up to 32 partial gradients of single precision
constexpr double largest_array = 2.5e8;    // 1 to 2 GB, of what a thread or a measurement keeps
constexpr double largest_sequences = 5e8;  // 4 GB

void refuse_above(const Section& root, std::string_view key, const char* what, double size, double largest,
                  const char* remedy) {
  if (size <= largest) return;
  root.fail(key, fmt::format("{}: {:.3g} numbers", what, size), fmt::format("at most {:.3g}, by {}", largest, remedy));
}

/// Numbers that one pass over sixteen sequences keeps.
double pass_size(const StackShape& shape, double length) {
  const double k = shape.key_dimension;
  const double layers = static_cast<double>(shape.layers.size());
  double entries = length * (layers * (shape.width + 4.0 * shape.channels()) + 2.0 * length);
  if (std::find(shape.layers.begin(), shape.layers.end(), LayerKind::mesa) != shape.layers.end()) {
    entries += 2.0 * k * k * (shape.forgetting ? length + 1.0 : 1.0);
  }
  return 16.0 * entries;
}

}  // namespace

void check_sizes(const Section& root, const AutoregressiveProblem& problem, const TrainingOptions& options,
                 const TrainedMeasurements& measurements) {
  const StackShape& shape = problem.shape;
  const double length = problem.sequence.length;
  const double n = shape.state_dimension;
  const auto parameters = static_cast<double>(StackLayout::of(shape).size);
  refuse_above(root, "model", "too large a model", parameters, largest_model, "fewer layers or heads, a smaller width");
  refuse_above(root, "sequence", "too long sequences for this model, in a pass", pass_size(shape, length),
               largest_array, "a smaller length, width, heads or key_dimension");
  refuse_above(root, "training", "too large a batch or evaluation set",
               2.0 * std::max(options.batch, options.evaluation_sequences) * length * n, largest_sequences,
               "fewer sequences");
  const double records =
      static_cast<double>(options.steps / options.record_every + 2) * static_cast<double>(options.seeds.size());
  refuse_above(root, "training", "too much to record", records * (options.keep_parameters ? parameters + 1.0 : 1.0),
               largest_array, "a larger record_every, or keep_parameters = false");
  if (measurements.baselines) {
    const double stacked = std::max(measurements.baselines->stacked, 1) * n;
    refuse_above(root, "baselines", "too large sequences for the search of rates", 1000.0 * length * n, largest_array,
                 "a smaller length or state_dimension");
    refuse_above(root, "baselines", "too many stacked states", 2.0 * stacked * stacked, largest_array,
                 "a smaller stacked or state_dimension");
  }
  if (measurements.probes) {
    const double decoders = (static_cast<double>(shape.layers.size()) + 1.0) *
                            static_cast<double>(measurements.probes->positions.size()) * 2.0;
    refuse_above(root, "probes", "too many decoders",
                 decoders * (shape.width * shape.width + 2.0 * static_cast<double>(measurements.probes->sequences)),
                 largest_array, "fewer positions or sequences");
  }
  if (measurements.few_shot) {
    const FewShotPlan& plan = *measurements.few_shot;
    const double tokens = plan.prefix + 3.0 * 2.0 * plan.pairs;  // two tasks, question, answer and the learned token
    refuse_above(root, "few_shot", "too many pairs for this model, in a pass", pass_size(shape, tokens), largest_array,
                 "fewer pairs or a shorter prefix");
    refuse_above(root, "few_shot", "too many sequences",
                 static_cast<double>(std::max<std::size_t>(plan.sequences, static_cast<std::size_t>(plan.batch))) *
                     4.0 * plan.pairs * n,
                 largest_sequences, "fewer sequences, pairs or a smaller batch");
  }
}

}  // namespace iclflow
