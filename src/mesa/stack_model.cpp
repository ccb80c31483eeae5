#include "stack_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "iclflow/attention/partial_sums.hpp"

namespace iclflow {

namespace {

std::size_t groups_of(const StackBatch& batch) { return (batch.count + sequences_per_group - 1) / sequences_per_group; }

void check(const StackBatch& batch, const StackShape& shape, const StackLayout& layout,
           const Eigen::VectorXd& parameters, bool targets) {
  const std::size_t size =
      batch.count * static_cast<std::size_t>(batch.length) * static_cast<std::size_t>(shape.state_dimension);
  if (batch.count == 0 || batch.length <= 0) throw std::invalid_argument("an empty batch");
  if (batch.inputs.size() != size || (targets && batch.targets.size() != size)) {
    throw std::invalid_argument(fmt::format("the batch must have {} numbers of inputs and targets", size));
  }
  if (!batch.position_weights.empty() && batch.position_weights.size() != static_cast<std::size_t>(batch.length)) {
    throw std::invalid_argument("one weight per position");
  }
  if (parameters.size() != layout.size) {
    throw std::invalid_argument(fmt::format("{} parameters instead of {}", parameters.size(), layout.size));
  }
}

}  // namespace

template <typename T>
StackModel<T>::StackModel(const StackShape& shape, int threads)
    : shape_(shape), layout_(StackLayout::of(shape)), team_(threads), weights_(shape, layout_), passes_(team_.size()) {}

template <typename T>
StackPass<T>& StackModel<T>::pass_of(std::size_t worker, int length) {
  std::unique_ptr<StackPass<T>>& pass = passes_[worker];
  if (!pass || pass->length() != length) pass = std::make_unique<StackPass<T>>(weights_, length);
  return *pass;
}

template <typename T>
void StackModel<T>::for_groups(const Eigen::VectorXd& parameters, const StackBatch& batch,
                               const std::function<void(StackPass<T>&, std::size_t)>& done) {
  weights_.set(parameters);
  team_.run(groups_of(batch), [&](std::size_t group, std::size_t worker) {
    StackPass<T>& pass = pass_of(worker, batch.length);
    pass.forward(batch, group);
    done(pass, group);
  });
}

template <typename T>
double StackModel<T>::loss(const Eigen::VectorXd& parameters, const StackBatch& batch) {
  check(batch, shape_, layout_, parameters, true);
  std::vector<double> sums(groups_of(batch));
  for_groups(parameters, batch, [&](StackPass<T>& pass, std::size_t group) { sums[group] = pass.loss(batch, group); });
  return std::accumulate(sums.begin(), sums.end(), 0.0) * (1.0 / static_cast<double>(batch.count));
}

template <typename T>
double StackModel<T>::gradient(const Eigen::VectorXd& parameters, const StackBatch& batch, Eigen::VectorXd& gradient,
                               std::vector<double>* input_gradient) {
  check(batch, shape_, layout_, parameters, true);
  const std::size_t groups = groups_of(batch);
  const std::size_t parts = partial_sums(groups, weights_.values.size() * sizeof(T));
  const double scale = 1.0 / static_cast<double>(batch.count);
  if (input_gradient != nullptr) input_gradient->assign(batch.inputs.size(), 0.0);
  weights_.set(parameters);
  partial_.resize(parts);
  std::vector<double> sums(groups);
  team_.run(parts, [&](std::size_t part, std::size_t worker) {
    StackPass<T>& pass = pass_of(worker, batch.length);
    partial_[part].assign(weights_.values.size(), T{0});
    for (std::size_t group = part * groups / parts; group < (part + 1) * groups / parts; ++group) {
      pass.forward(batch, group);
      sums[group] = pass.loss(batch, group);
      pass.backward(batch, group, scale, partial_[part], input_gradient);
    }
  });
  gradient.setZero(layout_.size);
  for (const std::vector<T>& partial : partial_) weights_.add_to(partial, gradient);
  return std::accumulate(sums.begin(), sums.end(), 0.0) * scale;
}

template <typename T>
std::vector<double> StackModel<T>::predictions(const Eigen::VectorXd& parameters, const StackBatch& batch) {
  check(batch, shape_, layout_, parameters, false);
  std::vector<double> out(batch.inputs.size());
  for_groups(parameters, batch,
             [&](StackPass<T>& pass, std::size_t group) { pass.predictions(group, batch.count, out); });
  return out;
}

template <typename T>
std::vector<double> StackModel<T>::stream(const Eigen::VectorXd& parameters, const StackBatch& batch, int layer) {
  check(batch, shape_, layout_, parameters, false);
  if (layer < 0 || layer > static_cast<int>(shape_.layers.size())) {
    throw std::invalid_argument(fmt::format("no layer {} in a stack of {}", layer, shape_.layers.size()));
  }
  std::vector<double> out(batch.count * static_cast<std::size_t>(batch.length * shape_.width));
  for_groups(parameters, batch,
             [&](StackPass<T>& pass, std::size_t group) { pass.stream(layer, group, batch.count, out); });
  return out;
}

template class StackModel<float>;
template class StackModel<double>;

}  // namespace iclflow
