#include "iclflow/mesa/autoregressive.hpp"

#include "iclflow/mesa/flow_study.hpp"

namespace iclflow {

namespace {

class Autoregressive final : public System {
 public:
  [[nodiscard]] std::string_view name() const override { return "autoregressive"; }
  [[nodiscard]] std::string_view description() const override {
    return "causal self-attention that predicts the next state of a dynamical system";
  }
  [[nodiscard]] std::unique_ptr<Study> parse(const Section& root) const override {
    return make_autoregressive_flow(root);
  }
  [[nodiscard]] std::vector<CatalogueEntry> catalogue() const override {
    return {
        {"sequences", "unitary", "complex diagonal dynamics, one linear layer: two-parameter flow and full training"},
        {"sequences", "rotation", "real rotations of planes: the counterexample, other blocks are trained, too"}};
  }
};

}  // namespace

std::unique_ptr<System> make_autoregressive() { return std::make_unique<Autoregressive>(); }

}  // namespace iclflow
