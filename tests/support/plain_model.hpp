#pragma once

#include <cmath>
#include <complex>
#include <vector>

#include "iclflow/attention/contexts.hpp"
#include "iclflow/attention/weights.hpp"

/// The model written a second time, as plainly as it can be: every token goes through K and V, no blocks are merged, no
/// gradient by hand. Scalar = std::complex<double> gives derivatives to rounding by the complex step.
namespace plain {

struct Sample {
  iclflow::Matrix x, y;  // d x L, I x L
  Eigen::VectorXd q, target;
};

inline Sample read(const iclflow::Context<double>& context) {
  const auto at = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  Sample s;
  s.x.resize(at(context.dimension), at(context.length));
  s.y.resize(at(context.tasks), at(context.length));
  for (std::size_t l = 0; l < context.length; ++l) {
    for (std::size_t j = 0; j < context.dimension; ++j) s.x(at(j), at(l)) = context.tokens[j * context.stride + l];
    for (std::size_t i = 0; i < context.tasks; ++i) {
      s.y(at(i), at(l)) = context.tokens[(context.dimension + i) * context.stride + l];
    }
  }
  s.q = Eigen::Map<const Eigen::VectorXd>(context.query.get(), at(context.dimension));
  s.target = Eigen::Map<const Eigen::VectorXd>(context.target.get(), at(context.tasks));
  return s;
}

inline std::vector<Sample> draw(const iclflow::Problem& problem, const iclflow::StreamKey& key, std::uint32_t count) {
  const iclflow::ContextSampler<double> sampler(problem);
  auto context = sampler.empty();
  auto scratch = sampler.scratch();
  std::vector<Sample> samples;
  for (std::uint32_t c = 0; c < count; ++c) {
    sampler.draw({key.seed, key.stream, key.step, c}, context, scratch);
    samples.push_back(read(context));
  }
  return samples;
}

template <typename Scalar>
Scalar loss(const iclflow::WeightLayout& layout, const std::vector<Scalar>& weights, const Sample& s) {
  const int d = layout.dimension;
  const int tasks = layout.tasks;
  const int n = d + tasks;
  const int e = layout.embedding;
  const auto length = static_cast<int>(s.x.cols());
  const auto token = [&](int row, int l) { return row < d ? s.x(row, l) : s.y(row - d, l); };
  std::vector<Scalar> prediction(static_cast<std::size_t>(tasks), Scalar(0));
  std::size_t at = 0;
  const auto take = [&](int rows, int columns) {
    const Scalar* begin = weights.data() + at;
    at += static_cast<std::size_t>(rows * columns);
    return [begin, columns](int r, int c) { return begin[r * columns + c]; };
  };
  for (int h = 0; h < layout.heads; ++h) {
    std::vector<Scalar> score(static_cast<std::size_t>(length), Scalar(0));
    std::vector<std::vector<Scalar>> output(static_cast<std::size_t>(length));  // what a token would add, per task
    if (layout.parametrisation == iclflow::Parametrisation::merged) {
      const auto w = take(d, d);
      const auto u = take(tasks, tasks);
      for (int l = 0; l < length; ++l) {
        for (int j = 0; j < d; ++j) {
          for (int k = 0; k < d; ++k) score[static_cast<std::size_t>(l)] += s.x(j, l) * w(j, k) * s.q(k);
        }
        for (int i = 0; i < tasks; ++i) {
          Scalar sum(0);
          for (int k = 0; k < tasks; ++k) sum += u(i, k) * s.y(k, l);
          output[static_cast<std::size_t>(l)].push_back(sum);
        }
      }
    } else {
      const auto key = take(e, n);
      const auto query = take(e, n);
      const auto value = take(e, n);
      const auto out = take(tasks, e);
      for (int l = 0; l < length; ++l) {
        std::vector<Scalar> carried;
        for (int a = 0; a < e; ++a) {
          Scalar k(0), v(0), qq(0);
          for (int r = 0; r < n; ++r) k += key(a, r) * token(r, l);
          for (int r = 0; r < n; ++r) v += value(a, r) * token(r, l);
          for (int r = 0; r < d; ++r) qq += query(a, r) * s.q(r);
          score[static_cast<std::size_t>(l)] += layout.score_factor * k * qq;
          carried.push_back(v);
        }
        for (int i = 0; i < tasks; ++i) {
          Scalar sum(0);
          for (int a = 0; a < e; ++a) sum += out(i, a) * carried[static_cast<std::size_t>(a)];
          output[static_cast<std::size_t>(l)].push_back(sum);
        }
      }
    }
    Scalar total(0);
    for (const Scalar& value : score) total += std::exp(value);
    for (std::size_t l = 0; l < score.size(); ++l) {
      for (std::size_t i = 0; i < prediction.size(); ++i) prediction[i] += std::exp(score[l]) / total * output[l][i];
    }
  }
  Scalar twice(0);
  for (std::size_t i = 0; i < prediction.size(); ++i) {
    const Scalar gap = prediction[i] - s.target(static_cast<Eigen::Index>(i));
    twice += gap * gap;
  }
  return 0.5 * twice;
}

inline double loss(const iclflow::WeightLayout& layout, const Eigen::VectorXd& weights,
                   const std::vector<Sample>& samples) {
  const std::vector<double> flat(weights.begin(), weights.end());
  double sum = 0.0;
  for (const Sample& sample : samples) sum += loss<double>(layout, flat, sample);
  return sum / static_cast<double>(samples.size());
}

/// Complex-step derivative: no difference is taken, so the step can be far below rounding.
inline Eigen::VectorXd gradient(const iclflow::WeightLayout& layout, const Eigen::VectorXd& weights,
                                const std::vector<Sample>& samples) {
  std::vector<std::complex<double>> flat(weights.begin(), weights.end());
  Eigen::VectorXd result = Eigen::VectorXd::Zero(weights.size());
  constexpr double step = 1e-100;
  for (Eigen::Index k = 0; k < weights.size(); ++k) {
    auto& entry = flat[static_cast<std::size_t>(k)];
    entry.imag(step);
    for (const Sample& sample : samples) result(k) += loss<std::complex<double>>(layout, flat, sample).imag() / step;
    entry.imag(0.0);
  }
  return result / static_cast<double>(samples.size());
}

}  // namespace plain
