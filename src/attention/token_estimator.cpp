#include "iclflow/attention/token_estimator.hpp"

#include <algorithm>
#include <array>

namespace iclflow {

namespace {

/// Partial sums of a batch. Enough for any sensible number of threads, few enough to keep memory small.
constexpr std::size_t partial_sums = 32;

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
      output_value(aligned_zeros<T>(heads * tasks * row)) {}

template <typename T>
void PackedWeights<T>::set(const ActingWeights& weights) {
  for (std::size_t h = 0; h < heads; ++h) {
    const Matrix& m = weights.key_query[h];
    for (std::size_t j = 0; j < dimension; ++j) {
      for (std::size_t r = 0; r < tokens(); ++r) {
        key_query[(j * heads + h) * row + r] =
            static_cast<T>(m(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(j)));
      }
    }
    const Matrix& a = weights.output_value[h];
    for (std::size_t i = 0; i < tasks; ++i) {
      for (std::size_t r = 0; r < tokens(); ++r) {
        output_value[(h * tasks + i) * row + r] =
            static_cast<T>(a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(r)));
      }
    }
  }
}

template <typename T>
void PackedWeights<T>::clear() {
  std::fill_n(key_query.get(), key_query_size(), T{0});
  std::fill_n(output_value.get(), output_value_size(), T{0});
}

template <typename T>
void PackedWeights<T>::add_to(ActingWeights& sum) const {
  for (std::size_t h = 0; h < heads; ++h) {
    Matrix& m = sum.key_query[h];
    for (std::size_t j = 0; j < dimension; ++j) {
      for (std::size_t r = 0; r < tokens(); ++r) {
        m(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(j)) +=
            static_cast<double>(key_query[(j * heads + h) * row + r]);
      }
    }
    Matrix& a = sum.output_value[h];
    for (std::size_t i = 0; i < tasks; ++i) {
      for (std::size_t r = 0; r < tokens(); ++r) {
        a(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(r)) +=
            static_cast<double>(output_value[(h * tasks + i) * row + r]);
      }
    }
  }
}

template <typename T>
PassScratch<T>::PassScratch(const PackedWeights<T>& w, std::size_t stride)
    : direction(aligned_zeros<T>(w.heads * w.row)),
      direction_slope(aligned_zeros<T>(w.heads * w.row)),
      attention(aligned_zeros<T>(w.heads * stride)),
      attention_slope(aligned_zeros<T>(w.heads * stride)),
      pooled(aligned_zeros<T>(w.heads * w.row)),
      pooled_slope(aligned_zeros<T>(w.heads * w.row)),
      residual(aligned_zeros<T>(w.tasks)) {}

template <typename T>
double token_pass(const PackedWeights<T>& w, const Context<T>& context, PassScratch<T>& s, PackedWeights<T>& gradient) {
  const std::size_t stride = context.stride;
  const std::size_t width = w.heads * w.row;
  const T* tokens = context.tokens.get();
  const T* values = tokens + w.value_begin * stride;
  const std::size_t value_rows = w.tokens() - w.value_begin;

  // yhat = sum_h A^h m^h,  m^h = Z p^h,  p^h = softmax(Z^T v^h),  v^h = M^h q    theory: eq:prediction
  matrix_vector(w.key_query.get(), width, context.query.get(), w.dimension, s.direction.get());
  scores(tokens, stride, w.key_rows, s.direction.get(), w.row, w.heads, s.attention.get());
  softmax(s.attention.get(), stride, context.length, w.heads);
  pool(values, stride, value_rows, s.attention.get(), w.heads, s.pooled.get() + w.value_begin, w.row);

  double loss = 0.0;
  for (std::size_t i = 0; i < w.tasks; ++i) {
    T residual = -context.target[i];
    for (std::size_t h = 0; h < w.heads; ++h) {
      const T* a = w.output_value.get() + (h * w.tasks + i) * w.row;
      const T* m = s.pooled.get() + h * w.row;
      for (std::size_t r = w.value_begin; r < w.tokens(); ++r) residual += a[r] * m[r];
    }
    s.residual[i] = residual;
    loss += 0.5 * static_cast<double>(residual) * static_cast<double>(residual);
  }

  // With r = yhat - y_q: dA^h = r m^T,  dm^h = A^hT r,  dp = Z^T dm,  ds = p * (dp - <p, dp>),  dv = Z ds,  dM^h = dv
  // q^T
  //                                                                         theory: eq:token-gradient
  std::fill_n(s.pooled_slope.get(), width, T{0});
  for (std::size_t h = 0; h < w.heads; ++h) {
    const T* m = s.pooled.get() + h * w.row;
    T* slope = s.pooled_slope.get() + h * w.row;
    for (std::size_t i = 0; i < w.tasks; ++i) {
      const T* a = w.output_value.get() + (h * w.tasks + i) * w.row;
      T* da = gradient.output_value.get() + (h * w.tasks + i) * w.row;
      const T residual = s.residual[i];
      for (std::size_t r = w.value_begin; r < w.tokens(); ++r) {
        da[r] += residual * m[r];
        slope[r] += residual * a[r];
      }
    }
  }
  scores(values, stride, value_rows, s.pooled_slope.get() + w.value_begin, w.row, w.heads, s.attention_slope.get());
  softmax_backward(s.attention.get(), s.attention_slope.get(), stride, w.heads);
  pool(tokens, stride, w.key_rows, s.attention_slope.get(), w.heads, s.direction_slope.get(), w.row);
  add_outer(gradient.key_query.get(), width, context.query.get(), w.dimension, s.direction_slope.get());
  return loss;
}

template struct PackedWeights<float>;
template struct PackedWeights<double>;
template struct PassScratch<float>;
template struct PassScratch<double>;
template double token_pass(const PackedWeights<float>&, const Context<float>&, PassScratch<float>&,
                           PackedWeights<float>&);
template double token_pass(const PackedWeights<double>&, const Context<double>&, PassScratch<double>&,
                           PackedWeights<double>&);

template <typename T>
struct TokenEstimator<T>::Worker {
  Context<T> context;
  typename ContextSampler<T>::Scratch draw;
  PassScratch<T> pass;
};

template <typename T>
TokenEstimator<T>::TokenEstimator(const Problem& problem, const WeightLayout& layout, ThreadTeam& team)
    : sampler_(problem), team_(team), layout_(layout), weights_(layout) {
  for (std::size_t k = 0; k < partial_sums; ++k) partial_gradient_.emplace_back(layout);
  for (std::size_t k = 0; k < team.size(); ++k) {
    Context<T> context = sampler_.empty();
    PassScratch<T> pass(weights_, context.stride);
    workers_.push_back(std::make_unique<Worker>(Worker{std::move(context), sampler_.scratch(), std::move(pass)}));
  }
}

template <typename T>
TokenEstimator<T>::~TokenEstimator() = default;

template <typename T>
typename TokenEstimator<T>::Result TokenEstimator<T>::operator()(const ActingWeights& weights, const StreamKey& key,
                                                                 std::size_t contexts) {
  weights_.set(weights);
  std::array<double, partial_sums> partial_loss{};
  team_.run(partial_sums, [&](std::size_t part, std::size_t worker) {
    Worker& own = *workers_[worker];
    PackedWeights<T>& sum = partial_gradient_[part];
    sum.clear();
    StreamKey at = key;
    for (std::size_t c = part * contexts / partial_sums; c < (part + 1) * contexts / partial_sums; ++c) {
      at.context = static_cast<std::uint32_t>(c);
      sampler_.draw(at, own.context, own.draw);
      partial_loss[part] += token_pass(weights_, own.context, own.pass, sum);
    }
  });
  Result mean{0.0, ActingWeights::zero(layout_)};
  const auto count = static_cast<double>(contexts);
  for (std::size_t part = 0; part < partial_sums; ++part) {
    mean.loss += partial_loss[part] / count;
    partial_gradient_[part].add_to(mean.gradient);
  }
  mean.gradient *= 1.0 / count;
  return mean;
}

template class TokenEstimator<float>;
template class TokenEstimator<double>;

}  // namespace iclflow
