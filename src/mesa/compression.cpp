#include "iclflow/mesa/compression.hpp"

#include <cmath>
#include <stdexcept>

namespace iclflow {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void require_tokens(const StackShape& shape) {
  if (shape.tokens != TokenKind::constructed) throw std::invalid_argument("products are those of constructed tokens");
}

void require_products(const StackShape& shape) {
  require_tokens(shape);
  bool described = !shape.normalise_keys;
  for (const LayerKind kind : shape.layers) described = described && kind != LayerKind::mesa;
  if (!described) {
    throw std::invalid_argument("products say all of linear and softmax layers without normalised keys only");
  }
}

/// Factor of the scores of a layer.
double score_factor(LayerKind kind, int key_dimension) {
  return kind == LayerKind::softmax ? 1.0 / std::sqrt(static_cast<double>(key_dimension)) : 1.0;
}

}  // namespace

StackProducts head_products(const StackShape& shape, const Eigen::VectorXd& parameters) {
  require_tokens(shape);
  const StackLayout layout = StackLayout::of(shape);
  if (parameters.size() != layout.size) throw std::invalid_argument("parameters do not fit the shape of the stack");
  const Index width = shape.width, k = shape.key_dimension;
  StackProducts products(shape.layers.size());
  for (std::size_t l = 0; l < shape.layers.size(); ++l) {
    const LayerOffsets& at = layout.layers[l];
    const Eigen::Map<const Rows> output(parameters.data() + at.output, width, shape.channels());
    for (Index h = 0; h < shape.heads; ++h) {
      const auto rows = [&](Index offset) {
        return Eigen::Map<const Rows>(parameters.data() + offset + h * k * width, k, width);
      };
      // W_k^T W_q and P W_v of each head (theory: eq:head-products)
      HeadProducts head;
      head.key_query = score_factor(shape.layers[l], shape.key_dimension) * (rows(at.key).transpose() * rows(at.query));
      head.output_value = output.middleCols(h * k, k) * rows(at.value);
      products[l].push_back(std::move(head));
    }
  }
  return products;
}

StackModelWeights stack_of(const StackShape& shape, const StackProducts& products) {
  require_products(shape);
  StackModelWeights model{shape, {}};
  model.shape.key_dimension = shape.width;
  model.shape.heads = static_cast<int>(products.front().size());
  const StackLayout layout = StackLayout::of(model.shape);
  model.parameters = Eigen::VectorXd::Zero(layout.size);
  const Index width = shape.width;
  for (std::size_t l = 0; l < products.size(); ++l) {
    const LayerOffsets& at = layout.layers[l];
    const double factor = score_factor(shape.layers[l], model.shape.key_dimension);
    Eigen::Map<Rows> output(model.parameters.data() + at.output, width, model.shape.channels());
    for (Index h = 0; h < model.shape.heads; ++h) {
      const HeadProducts& head = products[l][static_cast<std::size_t>(h)];
      const auto rows = [&](Index offset) {
        return Eigen::Map<Rows>(model.parameters.data() + offset + h * width * width, width, width);
      };
      rows(at.key).setIdentity();
      rows(at.query) = head.key_query / factor;
      rows(at.value) = head.output_value;
      output.middleCols(h * width, width).setIdentity();
    }
  }
  return model;
}

MatrixXd block_means(const MatrixXd& product, int state_dimension) {
  const Index n = state_dimension;
  MatrixXd means(product.rows() / n, product.cols() / n);
  for (Index i = 0; i < means.rows(); ++i)
    for (Index j = 0; j < means.cols(); ++j) means(i, j) = product.block(i * n, j * n, n, n).diagonal().mean();
  return means;
}

StackModelWeights compress(const StackShape& shape, const Eigen::VectorXd& parameters) {
  StackProducts products = head_products(shape, parameters);
  const Index n = shape.state_dimension;
  // block (i, j) -> (its diagonal's mean) I (theory: eq:compression)
  const auto replace = [n](MatrixXd& product) {
    const MatrixXd means = block_means(product, static_cast<int>(n));
    for (Index i = 0; i < means.rows(); ++i)
      for (Index j = 0; j < means.cols(); ++j)
        product.block(i * n, j * n, n, n) = means(i, j) * MatrixXd::Identity(n, n);
  };
  for (auto& layer : products) {
    for (HeadProducts& head : layer) {
      replace(head.key_query);
      replace(head.output_value);
    }
  }
  return stack_of(shape, products);
}

StackModelWeights interpolate(const StackModelWeights& one, const StackModelWeights& other) {
  StackProducts products = head_products(one.shape, one.parameters);
  const StackProducts others = head_products(other.shape, other.parameters);
  if (one.shape.layers != other.shape.layers || one.shape.heads != other.shape.heads ||
      one.shape.width != other.shape.width) {
    throw std::invalid_argument("only stacks of the same layers, heads and width can be averaged");
  }
  for (std::size_t l = 0; l < products.size(); ++l) {
    for (std::size_t h = 0; h < products[l].size(); ++h) {
      products[l][h].key_query = 0.5 * (products[l][h].key_query + others[l][h].key_query);
      products[l][h].output_value = 0.5 * (products[l][h].output_value + others[l][h].output_value);
    }
  }
  return stack_of(one.shape, products);
}

nlohmann::ordered_json compression_summary(const StackModelWeights& trained, const StackBatch& batch, int threads) {
  const StackModelWeights compressed = compress(trained.shape, trained.parameters);
  const StackModelWeights between = interpolate(trained, compressed);
  const auto loss = [&](const StackModelWeights& model) {
    return make_stack(model.shape, StackPrecision::double_precision, threads)->loss(model.parameters, batch);
  };
  return {{"loss", loss(compressed)},
          {"interpolated_loss", loss(between)},
          {"parameters_per_head", compressed_parameters_per_head},
          {"trained_loss", loss(trained)}};
}

}  // namespace iclflow
