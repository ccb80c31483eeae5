#pragma once

#include <functional>

#include "iclflow/attention/thread_team.hpp"
#include "iclflow/mesa/stack.hpp"
#include "stack_pass.hpp"

namespace iclflow {

/// A stack in one precision: groups of sequences are shared among threads, partial gradients added in a fixed order.
template <typename T>
class StackModel final : public Stack {
 public:
  StackModel(const StackShape& shape, int threads);

  [[nodiscard]] const StackShape& shape() const override { return shape_; }
  [[nodiscard]] const StackLayout& layout() const override { return layout_; }
  [[nodiscard]] double loss(const Eigen::VectorXd& parameters, const StackBatch& batch) override;
  double gradient(const Eigen::VectorXd& parameters, const StackBatch& batch, Eigen::VectorXd& gradient,
                  std::vector<double>* input_gradient) override;
  [[nodiscard]] std::vector<double> predictions(const Eigen::VectorXd& parameters, const StackBatch& batch) override;
  [[nodiscard]] std::vector<double> stream(const Eigen::VectorXd& parameters, const StackBatch& batch,
                                           int layer) override;

 private:
  /// Runs every group forward on some thread, then calls done(pass, group).
  void for_groups(const Eigen::VectorXd& parameters, const StackBatch& batch,
                  const std::function<void(StackPass<T>&, std::size_t group)>& done);
  [[nodiscard]] StackPass<T>& pass_of(std::size_t worker, int length);

  StackShape shape_;
  StackLayout layout_;
  ThreadTeam team_;
  StackWeights<T> weights_;
  std::vector<std::unique_ptr<StackPass<T>>> passes_;  ///< one per thread
  std::vector<std::vector<T>> partial_;                ///< gradients of the prepared weights
};

extern template class StackModel<float>;
extern template class StackModel<double>;

}  // namespace iclflow
