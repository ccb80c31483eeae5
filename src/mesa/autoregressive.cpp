#include "iclflow/mesa/autoregressive.hpp"

#include "iclflow/mesa/flow_study.hpp"
#include "iclflow/mesa/training_study.hpp"

namespace iclflow {

namespace {

class Autoregressive final : public System {
 public:
  [[nodiscard]] std::string_view name() const override { return "autoregressive"; }
  [[nodiscard]] std::string_view description() const override {
    return "causal self-attention that predicts the next state of a dynamical system";
  }
  [[nodiscard]] std::unique_ptr<Study> parse(const Section& root) const override {
    return root.has("dynamics") ? make_autoregressive_flow(root) : make_training_study(root);
  }
  [[nodiscard]] std::vector<CatalogueEntry> catalogue() const override {
    return {
        {"sequences", "orthogonal", "s_{t+1} = W s_t + noise, a fresh Haar-random orthogonal W for each sequence"},
        {"sequences", "partial", "the same in more dimensions, seen through a random matrix"},
        {"sequences", "nonlinear", "the same of a fixed network of the state"},
        {"sequences", "contracting", "W with moduli of the eigenvalues in [0.3, 0.9], fresh for each sequence"},
        {"sequences", "fixed", "one orthogonal W for all sequences"},
        {"sequences", "unitary", "complex diagonal dynamics, one linear layer: two-parameter flow and full training"},
        {"sequences", "rotation", "real rotations of planes: the counterexample, other blocks are trained, too"},
        {"layers", "linear", "causal linear self-attention, no scale"},
        {"layers", "softmax", "causal softmax self-attention, scores over the root of the key dimension"},
        {"layers", "mesa", "ridge regression over the past in one layer; rank-one or conjugate-gradients, forgetting"}};
  }
};

}  // namespace

std::unique_ptr<System> make_autoregressive() { return std::make_unique<Autoregressive>(); }

}  // namespace iclflow
