#include "iclflow/attention/score_space_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "iclflow/attention/partial_sums.hpp"
#include "iclflow/attention/score_space.hpp"
#include "iclflow/attention/score_space_kernels.hpp"
#include "iclflow/random/normals.hpp"

namespace iclflow {

namespace {

constexpr std::size_t groups_per_part = 4;  ///< at least: a partial sum is as large as all weights

std::size_t size_of(Eigen::Index count) { return static_cast<std::size_t>(count); }

std::vector<std::size_t> block_begins(const Problem& problem) {
  std::vector<std::size_t> begins;
  for (int i = 0; i <= problem.tasks(); ++i) begins.push_back(size_of(problem.block_begin(i)));
  return begins;
}

/// c_h: z^h follows V^h = W^h q while |V^h| is below sqrt(2 ln L), about the longest of L tokens, and stays there
/// beyond; |V^h|^2 is |W^h|^2 on average. Any number fixed before the draw leaves the mean as it is.
///                                                                         theory: eq:score-space-control
double linear_share(const Matrix& w, std::size_t length) {
  const double longest = std::sqrt(2.0 * std::log(static_cast<double>(length)));
  const double size = w.norm();
  return size > longest ? longest / size : 1.0;
}

}  // namespace

template <typename T>
struct ScoreSpaceGradient<T>::Parts {
  WeightLayout layout;
  Rotations basis;
  bool rotated;
  ThreadTeam& team;
  std::vector<double> amplitude;  ///< a_k
  double noise_variance;
  ScoreSpaceWeights<T> weights;
  std::vector<ScoreSpaceScratch<T>> scratch;  ///< one per thread
  std::vector<ScoreSpaceSums<T>> sums;
  // Of the weights that are looked at, in the Phi, Psi basis.
  std::vector<Matrix> w, u;
  std::vector<Matrix> shared;  ///< a_k N_k

  /// c_h as the contexts' sums were made with it.
  [[nodiscard]] double linear(std::size_t h) const { return static_cast<double>(weights.linear[h]); }
  [[nodiscard]] std::size_t bytes_of_sum() const {
    return weights.heads * weights.dimension * weights.width * sizeof(T);
  }

  Parts(const Problem& problem, const WeightLayout& its_layout, const Rotations& its_basis, ThreadTeam& its_team)
      : layout(its_layout),
        basis(its_basis),
        rotated(problem.rotation == Rotation::random),
        team(its_team),
        noise_variance(problem.noise_variance),
        weights(size_of(problem.heads), size_of(problem.context_length), block_begins(problem)),
        w(weights.heads),
        u(weights.heads),
        shared(weights.tasks) {
    for (const double lambda : problem.signal_variance) {
      amplitude.push_back(problem.response_factor() * problem.response_factor() * lambda);
    }
    std::copy(amplitude.begin(), amplitude.end(), weights.amplitude.begin());
    weights.noise_variance = static_cast<T>(noise_variance);
    for (std::size_t k = 0; k < team.size(); ++k) scratch.emplace_back(weights);
  }

  /// u_ik = (U^h_ik)_h
  [[nodiscard]] Eigen::VectorXd across_heads(Eigen::Index i, Eigen::Index k) const {
    Eigen::VectorXd values(layout.heads);
    for (Eigen::Index h = 0; h < layout.heads; ++h) values(h) = u[size_of(h)](i, k);
    return values;
  }
};

template <typename T>
ScoreSpaceGradient<T>::ScoreSpaceGradient(const Problem& problem, const WeightLayout& layout, const Rotations& basis,
                                          ThreadTeam& team)
    : parts_(std::make_unique<Parts>(problem, layout, basis, team)) {}

template <typename T>
ScoreSpaceGradient<T>::~ScoreSpaceGradient() = default;

/// Packs the weights, and what they are multiplied to in every context: a_k N_k, a_k u_kk, sigma^2 sum_k N_k.
template <typename T>
void ScoreSpaceGradient<T>::look_at(const ActingWeights& at) {
  Parts& own = *parts_;
  const Eigen::Index d = own.layout.dimension;
  const Eigen::Index heads = own.layout.heads;
  const Eigen::Index tasks = own.layout.tasks;
  using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Packed = Eigen::Map<Rows>;
  for (Eigen::Index h = 0; h < heads; ++h) {
    own.w[size_of(h)] = at.key_query[size_of(h)].topRows(d);
    own.u[size_of(h)] = at.output_value[size_of(h)].rightCols(tasks);
    if (own.rotated) {
      own.w[size_of(h)] = own.basis.phi.transpose() * own.w[size_of(h)] * own.basis.phi;
      own.u[size_of(h)] = own.basis.psi.transpose() * own.u[size_of(h)] * own.basis.psi;
    }
    Packed(&own.weights.key_query[size_of(h * d * d)], d, d) = own.w[size_of(h)].template cast<T>();
    own.weights.linear[size_of(h)] = static_cast<T>(linear_share(own.w[size_of(h)], own.weights.length));
  }
  Matrix noise = Matrix::Zero(heads, heads);
  for (Eigen::Index k = 0; k < tasks; ++k) {
    const double amplitude = own.amplitude[size_of(k)];
    Matrix n = Matrix::Zero(heads, heads);
    for (Eigen::Index i = 0; i < tasks; ++i) {
      const Eigen::VectorXd u = own.across_heads(i, k);
      n.noalias() += u * u.transpose();
    }
    own.shared[size_of(k)] = amplitude * n;
    noise += own.noise_variance * n;
    Packed(&own.weights.shared[size_of(k * heads * heads)], heads, heads) = own.shared[size_of(k)].template cast<T>();
    Packed(&own.weights.own[size_of(k * heads)], 1, heads) =
        (amplitude * own.across_heads(k, k)).transpose().template cast<T>();
  }
  Packed(own.weights.noise.get(), heads, heads) = noise.template cast<T>();
}

template <typename T>
void ScoreSpaceGradient<T>::draw(const StreamKey& key, std::size_t group, std::size_t contexts, std::size_t worker) {
  Parts& own = *parts_;
  ScoreSpaceScratch<T>& scratch = own.scratch[worker];
  StreamKey at = key;
  at.context = static_cast<std::uint32_t>(group);
  fill_normals(at, 0, scratch.normals.get(), whole_groups<T>(own.weights.normals()));
  for (std::size_t n = 0; n < contexts_per_group; ++n) {
    scratch.present[n] = static_cast<T>(group * contexts_per_group + n < contexts ? 1 : 0);
  }
}

template <typename T>
typename ScoreSpaceGradient<T>::Result ScoreSpaceGradient<T>::operator()(const ActingWeights& weights,
                                                                         const StreamKey& key, std::size_t contexts) {
  Parts& own = *parts_;
  look_at(weights);
  const std::size_t groups = (contexts + contexts_per_group - 1) / contexts_per_group;
  const std::size_t parts = partial_sums(groups / groups_per_part, own.bytes_of_sum());
  while (own.sums.size() < parts) own.sums.emplace_back(own.weights);
  own.team.run(parts, [&](std::size_t part, std::size_t worker) {
    own.sums[part].clear(own.weights);
    for (std::size_t g = part * groups / parts; g < (part + 1) * groups / parts; ++g) {
      draw(key, g, contexts, worker);
      score_space_group(own.weights, own.scratch[worker], own.sums[part]);
    }
  });
  return collect(parts, contexts);
}

template <typename T>
typename ScoreSpaceGradient<T>::Result ScoreSpaceGradient<T>::collect(std::size_t parts, std::size_t contexts) const {
  const Parts& own = *parts_;
  const auto count = static_cast<double>(contexts);
  const Eigen::Index d = own.layout.dimension;
  const Eigen::Index tasks = own.layout.tasks;
  Result mean{0.0, ActingWeights::zero(own.layout)};
  mean.loss = add_to_values(parts, count, mean.gradient);
  own.team.run(own.weights.heads, [&](std::size_t h, std::size_t /*worker*/) {
    Matrix& m = mean.gradient.key_query[h];
    add_to_scores(parts, count, h, m);
    if (!own.rotated) return;
    Matrix& a = mean.gradient.output_value[h];
    m.topRows(d) = own.basis.phi * m.topRows(d) * own.basis.phi.transpose();
    a.rightCols(tasks) = own.basis.psi * a.rightCols(tasks) * own.basis.psi.transpose();
  });
  return mean;
}

/// dW^h = c_h D_h + mean of (Vbar_h - c_h D_h q) q^T with D_h q = Gamma0_h: rows J_k of D_h are
///   sum_g (a_k N_k)_gh c_g W^g_{J_k} - a_k u_kk^h E_{J_k}                   theory: eq:score-space-control
template <typename T>
void ScoreSpaceGradient<T>::add_to_scores(std::size_t parts, double count, std::size_t h, Matrix& gradient) const {
  const Parts& own = *parts_;
  const Eigen::Index d = own.layout.dimension;
  const auto width = static_cast<Eigen::Index>(own.weights.width);
  using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Sum = Eigen::Map<const Rows, 0, Eigen::OuterStride<>>;
  auto slope = gradient.topRows(d);
  for (std::size_t part = 0; part < parts; ++part) {
    const T* sum = &own.sums[part].key_query[h * size_of(d * width)];
    slope += Sum(sum, d, d, Eigen::OuterStride<>(width)).template cast<double>();
  }
  slope /= count;
  const auto column = static_cast<Eigen::Index>(h);
  for (std::size_t k = 0; k < own.weights.tasks; ++k) {
    const auto begin = static_cast<Eigen::Index>(own.weights.block_begin[k]);
    const Eigen::Index size = static_cast<Eigen::Index>(own.weights.block_begin[k + 1]) - begin;
    for (Eigen::Index g = 0; g < own.layout.heads; ++g) {
      const double share = own.linear(h) * own.linear(size_of(g)) * own.shared[k](g, column);
      if (share != 0.0) slope.middleRows(begin, size) += share * own.w[size_of(g)].middleRows(begin, size);
    }
    const auto task = static_cast<Eigen::Index>(k);
    slope.block(begin, begin, size, size).diagonal().array() -= own.linear(h) * own.amplitude[k] * own.u[h](task, task);
  }
}

/// dU_ik = S_k u_ik - delta_ik c_k and
///   ell = (1/2) sum_k { a_k |J_k| - 2 u_kk^T c_k + sum_i u_ik^T S_k u_ik },
/// S_k and c_k the means of a_k z^T z + (a_k tau_k + sigma^2) C and a_k z^T q over J_k; the parts with c_h V_h for z_h
/// have the means a_k c_h c_g <W^h_{J_k}, W^g_{J_k}> and a_k c_h tr W^h_{J_k J_k}.
///                                                                         theory: eq:score-space-gradient-u
template <typename T>
double ScoreSpaceGradient<T>::add_to_values(std::size_t parts, double count, ActingWeights& gradient) const {
  const Parts& own = *parts_;
  const Eigen::Index heads = own.layout.heads;
  const Eigen::Index tasks = own.layout.tasks;
  const auto sum = [&](AlignedArray<T> ScoreSpaceSums<T>::*array, std::size_t entry) {
    double total = 0.0;
    for (std::size_t part = 0; part < parts; ++part) {
      const T* lanes = (own.sums[part].*array).get() + entry * contexts_per_group;
      for (std::size_t n = 0; n < contexts_per_group; ++n) total += static_cast<double>(lanes[n]);
    }
    return total / count;
  };
  double twice = 0.0;
  for (Eigen::Index k = 0; k < tasks; ++k) {
    const double amplitude = own.amplitude[size_of(k)];
    const auto begin = static_cast<Eigen::Index>(own.weights.block_begin[size_of(k)]);
    const Eigen::Index size = static_cast<Eigen::Index>(own.weights.block_begin[size_of(k) + 1]) - begin;
    Matrix overlap(heads, heads);
    Eigen::VectorXd aligned(heads);
    for (Eigen::Index h = 0; h < heads; ++h) {
      const auto rows = own.w[size_of(h)].middleRows(begin, size);
      aligned(h) = sum(&ScoreSpaceSums<T>::own, size_of(k * heads + h)) +
                   own.linear(size_of(h)) * amplitude * rows.middleCols(begin, size).trace();
      for (Eigen::Index g = 0; g <= h; ++g) {
        overlap(h, g) = sum(&ScoreSpaceSums<T>::overlap, size_of((k * heads + h) * heads + g)) +
                        own.linear(size_of(h)) * own.linear(size_of(g)) * amplitude *
                            rows.cwiseProduct(own.w[size_of(g)].middleRows(begin, size)).sum();
        overlap(g, h) = overlap(h, g);
      }
    }
    twice += amplitude * static_cast<double>(size) - 2.0 * own.across_heads(k, k).dot(aligned);
    for (Eigen::Index i = 0; i < tasks; ++i) {
      const Eigen::VectorXd u = own.across_heads(i, k);
      Eigen::VectorXd slope = overlap * u;
      twice += u.dot(slope);
      if (i == k) slope -= aligned;
      for (Eigen::Index h = 0; h < heads; ++h) {
        gradient.output_value[size_of(h)](i, own.layout.dimension + k) = slope(h);
      }
    }
  }
  return 0.5 * twice;
}

template <typename T>
ScoreSpaceWeights<T>::ScoreSpaceWeights(std::size_t its_heads, std::size_t its_length, std::vector<std::size_t> begins)
    : heads(its_heads),
      dimension(begins.back()),
      tasks(begins.size() - 1),
      rank(std::min(heads, dimension)),
      length(its_length),
      width((dimension * sizeof(T) + 63) / 64 * 64 / sizeof(T)),
      block_begin(std::move(begins)),
      amplitude(tasks),
      noise_variance(0),
      key_query(aligned_zeros<T>(heads * dimension * dimension)),
      shared(aligned_zeros<T>(tasks * heads * heads)),
      own(aligned_zeros<T>(tasks * heads)),
      noise(aligned_zeros<T>(heads * heads)),
      linear(heads, T{1}) {}

template <typename T>
ScoreSpaceScratch<T>::ScoreSpaceScratch(const ScoreSpaceWeights<T>& w)
    : normals(aligned_zeros<T>(whole_groups<T>(w.normals()))), present(aligned_zeros<T>(contexts_per_group)) {
  const auto room = [](AlignedArray<T>& array, std::size_t entries) {
    array = aligned_zeros<T>(entries * contexts_per_group);
  };
  for (AlignedArray<T>* array : {&directions, &slope, &direction_slope}) room(*array, w.heads * w.dimension);
  for (AlignedArray<T>* array : {&mixing, &pooled, &slope_in_basis, &score_slope}) room(*array, w.heads * w.rank);
  for (AlignedArray<T>* array : {&overlap, &overlap_slope}) room(*array, w.heads * w.heads);
  room(basis, w.rank * w.dimension);
  room(attention, w.length * w.heads);
  room(scale, w.heads);
  room(second, w.heads * w.rank * w.rank);
  room(pair, w.heads * w.heads * w.rank);
  room(left_over, w.tasks);
  room(cross, w.tasks * w.heads * w.rank);
  room(query_rows, w.width);
}

template <typename T>
ScoreSpaceSums<T>::ScoreSpaceSums(const ScoreSpaceWeights<T>& w)
    : key_query(aligned_zeros<T>(w.heads * w.dimension * w.width)),
      overlap(aligned_zeros<T>(w.tasks * w.heads * w.heads * contexts_per_group)),
      own(aligned_zeros<T>(w.tasks * w.heads * contexts_per_group)) {}

template <typename T>
void ScoreSpaceSums<T>::clear(const ScoreSpaceWeights<T>& w) {
  std::fill_n(key_query.get(), w.heads * w.dimension * w.width, T{0});
  std::fill_n(overlap.get(), w.tasks * w.heads * w.heads * contexts_per_group, T{0});
  std::fill_n(own.get(), w.tasks * w.heads * contexts_per_group, T{0});
}

template struct ScoreSpaceWeights<float>;
template struct ScoreSpaceWeights<double>;
template struct ScoreSpaceScratch<float>;
template struct ScoreSpaceScratch<double>;
template struct ScoreSpaceSums<float>;
template struct ScoreSpaceSums<double>;
template class ScoreSpaceGradient<float>;
template class ScoreSpaceGradient<double>;

}  // namespace iclflow
