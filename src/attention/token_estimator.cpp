#include "iclflow/attention/token_estimator.hpp"

#include <algorithm>

#include "iclflow/attention/partial_sums.hpp"

namespace iclflow {

namespace {

/// Contexts that make a partial sum worth its clearing and adding.
constexpr std::size_t contexts_per_part = 32;

}  // namespace

template <typename T>
PackedWeights<T>::PackedWeights(const WeightLayout& layout)
    : heads(static_cast<std::size_t>(layout.heads)),
      dimension(static_cast<std::size_t>(layout.dimension)),
      tasks(static_cast<std::size_t>(layout.tasks)),
      row(padded(dimension + tasks)),
      key_rows(layout.parametrisation == Parametrisation::merged ? dimension : dimension + tasks),
      value_begin(layout.parametrisation == Parametrisation::merged ? dimension : 0),
      key_query(aligned_zeros<T>(dimension * heads * row)),
      output_value(aligned_zeros<T>(tasks * heads * row)) {}

template <typename T>
void PackedWeights<T>::set(const ActingWeights& weights) {
  for (std::size_t h = 0; h < heads; ++h) {
    key_query_of(h) = weights.key_query[h].transpose().template cast<T>();
    output_value_of(h) = weights.output_value[h].template cast<T>();
  }
}

template <typename T>
void PackedWeights<T>::clear() {
  std::fill_n(key_query.get(), dimension * width(), T{0});
  std::fill_n(output_value.get(), tasks * width(), T{0});
}

template <typename T>
typename PackedWeights<T>::Block PackedWeights<T>::key_query_of(std::size_t h) const {
  return Block(key_query.get() + h * row, static_cast<Eigen::Index>(dimension), static_cast<Eigen::Index>(tokens()),
               Eigen::OuterStride<>(static_cast<Eigen::Index>(width())));
}

template <typename T>
typename PackedWeights<T>::Block PackedWeights<T>::output_value_of(std::size_t h) const {
  return Block(output_value.get() + h * row, static_cast<Eigen::Index>(tasks), static_cast<Eigen::Index>(tokens()),
               Eigen::OuterStride<>(static_cast<Eigen::Index>(width())));
}

template <typename T>
ActingWeights PackedWeights<T>::unpacked() const {
  ActingWeights weights;
  for (std::size_t h = 0; h < heads; ++h) {
    weights.key_query.emplace_back(key_query_of(h).transpose().template cast<double>());
    weights.output_value.emplace_back(output_value_of(h).template cast<double>());
  }
  return weights;
}

template <typename T>
TokenPass<T>::TokenPass(const PackedWeights<T>& layout, std::size_t length, std::size_t stride_of_query)
    : width_(layout.width()),
      row_(layout.row),
      tasks_(layout.tasks),
      attention_stride_(padded(length)),
      query_stride_(stride_of_query),
      residual_stride_(padded(layout.tasks)),
      query_(aligned_zeros<T>(largest_count * query_stride_)),
      direction_(aligned_zeros<T>(largest_count * width_)),
      direction_slope_(aligned_zeros<T>(largest_count * width_)),
      pooled_(aligned_zeros<T>(largest_count * width_)),
      residual_(aligned_zeros<T>(largest_count * residual_stride_)),
      attention_(aligned_zeros<T>(layout.heads * attention_stride_)),
      attention_slope_(aligned_zeros<T>(layout.heads * attention_stride_)),
      pooled_slope_(aligned_zeros<T>(width_)) {}

template <typename T>
void TokenPass<T>::begin(const PackedWeights<T>& w, std::size_t count) {
  kernels<T>().products(w.key_query.get(), width_, w.dimension, query_.get(), query_stride_, count, direction_.get(),
                        width_);
}

template <typename T>
double TokenPass<T>::pass(const PackedWeights<T>& w, const Context<T>& context, std::size_t c) {
  const Kernels<T>& k = kernels<T>();
  const std::size_t length = context.length;
  const std::size_t value_rows = w.tokens() - w.value_begin;
  const T* values = context.tokens + w.value_begin * context.stride;
  T* pooled = pooled_.get() + c * width_;
  T* residual = residual_.get() + c * residual_stride_;

  // yhat = sum_h A^h m^h,  m^h = Z p^h,  p^h = softmax(Z^T v^h),  v^h = M^h q    theory: eq:prediction
  k.scores(context.tokens, context.stride, length, w.key_rows, direction_.get() + c * width_, row_, w.heads,
           attention_.get(), attention_stride_);
  k.softmax(attention_.get(), attention_stride_, length, w.heads);
  k.pool(values, context.stride, length, value_rows, attention_.get(), attention_stride_, w.heads,
         pooled + w.value_begin, row_);
  k.pool(w.output_value.get(), width_, width_, tasks_, pooled, width_, 1, residual, residual_stride_);
  double loss = 0.0;
  for (std::size_t i = 0; i < tasks_; ++i) {
    residual[i] -= context.target[i];
    loss += 0.5 * static_cast<double>(residual[i]) * static_cast<double>(residual[i]);
  }

  // With r = yhat - y_q: dA^h = r m^T,  dm^h = A^hT r,  dp = Z^T dm,  ds = p * (dp - <p, dp>),  dv = Z ds,  dM^h = dv
  // q^T
  //                                                                         theory: eq:token-gradient
  k.products(w.output_value.get(), width_, tasks_, residual, residual_stride_, 1, pooled_slope_.get(), width_);
  k.scores(values, context.stride, length, value_rows, pooled_slope_.get() + w.value_begin, row_, w.heads,
           attention_slope_.get(), attention_stride_);
  k.softmax_backward(attention_.get(), attention_slope_.get(), attention_stride_, length, w.heads);
  k.pool(context.tokens, context.stride, length, w.key_rows, attention_slope_.get(), attention_stride_, w.heads,
         direction_slope_.get() + c * width_, row_);
  return loss;
}

template <typename T>
void TokenPass<T>::finish(std::size_t count, PackedWeights<T>& gradient) const {
  const Kernels<T>& k = kernels<T>();
  k.add_products(gradient.key_query.get(), width_, gradient.dimension, query_.get(), query_stride_,
                 direction_slope_.get(), width_, count);
  k.add_products(gradient.output_value.get(), width_, tasks_, residual_.get(), residual_stride_, pooled_.get(), width_,
                 count);
}

template <typename T>
double TokenPass<T>::operator()(const PackedWeights<T>& weights, const Context<T>& context,
                                PackedWeights<T>& gradient) {
  std::copy_n(context.query.get(), weights.dimension, query(0));
  begin(weights, 1);
  const double loss = pass(weights, context, 0);
  finish(1, gradient);
  return loss;
}

template struct PackedWeights<float>;
template struct PackedWeights<double>;
template class TokenPass<float>;
template class TokenPass<double>;

template <typename T>
struct TokenEstimator<T>::Worker {
  Context<T> context;
  typename ContextSampler<T>::Scratch draw;
  TokenPass<T> pass;
};

template <typename T>
TokenEstimator<T>::TokenEstimator(const Problem& problem, const WeightLayout& layout, ThreadTeam& team)
    : sampler_(problem), team_(team), layout_(layout), weights_(layout) {
  for (std::size_t k = 0; k < team.size(); ++k) {
    Context<T> context = sampler_.empty();
    TokenPass<T> pass(weights_, context.length, sampler_.query_room());
    workers_.push_back(std::make_unique<Worker>(Worker{std::move(context), sampler_.scratch(), std::move(pass)}));
  }
}

template <typename T>
TokenEstimator<T>::~TokenEstimator() = default;

/// Sum of the losses of contexts [begin, end), whose gradient is added to `sum`.
template <typename T>
double TokenEstimator<T>::add(Worker& own, StreamKey key, std::size_t begin, std::size_t end, PackedWeights<T>& sum) {
  double loss = 0.0;
  const auto at = [&key](std::size_t context) {
    key.context = static_cast<std::uint32_t>(context);
    return key;
  };
  for (; begin < end; begin += TokenPass<T>::largest_count) {
    const std::size_t count = std::min(TokenPass<T>::largest_count, end - begin);
    for (std::size_t c = 0; c < count; ++c) sampler_.draw_query(at(begin + c), own.pass.query(c));
    own.pass.begin(weights_, count);
    for (std::size_t c = 0; c < count; ++c) {
      sampler_.draw_tokens(at(begin + c), own.pass.query(c), own.context, own.draw);
      loss += own.pass.pass(weights_, own.context, c);
    }
    own.pass.finish(count, sum);
  }
  return loss;
}

template <typename T>
typename TokenEstimator<T>::Result TokenEstimator<T>::operator()(const ActingWeights& weights, const StreamKey& key,
                                                                 std::size_t contexts) {
  weights_.set(weights);
  const std::size_t parts = partial_sums(contexts / contexts_per_part, weights_.bytes());
  while (partial_gradient_.size() < parts) partial_gradient_.emplace_back(layout_);
  std::vector<double> partial_loss(parts);
  team_.run(parts, [&](std::size_t part, std::size_t worker) {
    partial_gradient_[part].clear();
    partial_loss[part] =
        add(*workers_[worker], key, part * contexts / parts, (part + 1) * contexts / parts, partial_gradient_[part]);
  });
  Result mean{0.0, ActingWeights::zero(layout_)};
  const double share = 1.0 / static_cast<double>(contexts);
  for (const double loss : partial_loss) mean.loss += share * loss;
  team_.run(weights_.heads, [&](std::size_t h, std::size_t /*worker*/) {
    Matrix key_query = Matrix::Zero(layout_.dimension, layout_.tokens());
    Matrix& output_value = mean.gradient.output_value[h];
    for (std::size_t part = 0; part < parts; ++part) {
      key_query += partial_gradient_[part].key_query_of(h).template cast<double>();
      output_value += partial_gradient_[part].output_value_of(h).template cast<double>();
    }
    mean.gradient.key_query[h] = share * key_query.transpose();
    output_value *= share;
  });
  return mean;
}

template class TokenEstimator<float>;
template class TokenEstimator<double>;

}  // namespace iclflow
