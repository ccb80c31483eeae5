#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iclflow/experiment/system.hpp"
#include "iclflow/problem/initial.hpp"
#include "iclflow/reduction/embedding.hpp"
#include "iclflow/regression/evaluate.hpp"

namespace iclflow {

/// [initial]: where every dynamics of the experiment starts, as products and as full weights.
class Start {
 public:
  /// The start of an experiment without [initial]: the authors' own.
  explicit Start(const Problem& problem);
  /// Throws InputError. A weights file is looked up next to the experiment file.
  Start(const Problem& problem, const Section& section);

  [[nodiscard]] const InitialState& spectral() const { return spectral_; }
  [[nodiscard]] WeightLayout layout() const;
  [[nodiscard]] Eigen::VectorXd weights() const;  ///< laid out by layout(); embedded on demand
  /// The same with the dense normal perturbation of a seed, if the file asks for one.
  [[nodiscard]] Eigen::VectorXd perturbed_weights(std::uint64_t seed) const;

  void resolve(TomlText& text) const;
  [[nodiscard]] std::vector<Attachment> attachments() const;

 private:
  void read_numbers(const Section& section);
  void read_preset(const Section& section);
  void read_weights_file(const Section& section);
  void read_imbalance(const Section& section);

  Problem problem_;
  InitialState spectral_;
  std::string preset_;  ///< "aligned", "authors", "random", "limit", or empty: numbers or a weights file
  double scale_ = 0.0;
  double own_ratio_ = 1.0;
  std::uint64_t seed_ = 0;
  bool positive_ = false;                      ///< of "random"
  bool equal_omega_ = false;                   ///< of "random"
  double perturbation_ = 0.0;                  ///< standard deviation of the noise on every full weight of a simulation
  std::shared_ptr<const NamedWeights> named_;  ///< of a weights file, else empty
  std::string weights_text_;
};

}  // namespace iclflow
