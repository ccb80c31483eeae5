#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "iclflow/attention/weights.hpp"

namespace iclflow {

/// A JSON document that does not say what it must. pointer() is a JSON pointer to the value at fault.
class JsonError : public std::runtime_error {
 public:
  JsonError(std::string pointer, const std::string& what) : std::runtime_error(what), pointer_(std::move(pointer)) {}
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

 private:
  std::string pointer_;
};

struct NamedWeights {
  WeightLayout layout;
  Eigen::VectorXd values;
};
/// Reads {"parametrisation": .., "W", "U" | "score_scale", "K", "Q", "V", "O"}. Throws JsonError.
[[nodiscard]] NamedWeights read_weights(const nlohmann::json& document);

/// `iclflow evaluate`: loss and gradient of given weights on given contexts; see README. Throws JsonError.
[[nodiscard]] nlohmann::ordered_json evaluate(const nlohmann::json& document);

}  // namespace iclflow
