// Reference evaluation of a kernel expression, pair by pair in plain double arithmetic.
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::kernels {
namespace {

struct PointPair {
  const double* a;
  Index stride_a;
  const double* b;
  Index stride_b;
  double x(Index c) const { return a[c * stride_a]; }
  double y(Index c) const { return b[c * stride_b]; }
  double difference(Index c) const { return x(c) - y(c); }
};

// The squared feature difference of input k of the leaf: what its lengthscale scales.
double squared_difference(const Leaf& leaf, const PointPair& pair, Index k) {
  double u = pair.difference(leaf.column(k));
  if (leaf.info().inputs == InputMap::circle) u = 2 * std::sin(std::numbers::pi * u / leaf.shape);
  u /= leaf.lengthscale(k);
  return u * u;
}

// factor times the product of input k of the leaf, for the dot family.
double scaled_product(const Leaf& leaf, const PointPair& pair, Index k, double factor) {
  const double l = leaf.lengthscale(k);
  return factor * (pair.x(leaf.column(k)) / l) * (pair.y(leaf.column(k)) / l);
}

// r2 of the distance family, s of the dot family.
double leaf_argument(const Leaf& leaf, const PointPair& pair) {
  double sum = 0;
  const bool distance = leaf.info().family == Family::distance;
  for (Index k = 0; k < leaf.num_inputs(); ++k)
    sum += distance ? squared_difference(leaf, pair, k) : scaled_product(leaf, pair, k, 1);
  return sum;
}

double leaf_value(const Leaf& leaf, const PointPair& pair) {
  const auto& info = leaf.info();
  return info.profile(info.family == Family::constant ? 0.0 : leaf_argument(leaf, pair),
                      leaf.own());
}

// dk/dlog p = slope dr2/dlog p, where on the circle map
// dr2/dlog p = -2 sum_c (2 pi dx / (p l^2)) sin(2 pi dx / p).
double period_derivative(const Leaf& leaf, const PointPair& pair, double slope) {
  double sum = 0;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    const double l = leaf.lengthscale(k);
    const double phase = 2 * std::numbers::pi * pair.difference(leaf.column(k)) / leaf.shape;
    sum += phase * std::sin(phase) / (l * l);
  }
  return -2 * slope * sum;
}

// Writes d leaf / d log parameter into out, which starts as zeros; returns the value.
double leaf_gradient(const Leaf& leaf, const PointPair& pair, double* out) {
  const auto& info = leaf.info();
  const double value = leaf_value(leaf, pair);
  if (info.family == Family::constant) return value;
  const bool distance = info.family == Family::distance;
  const double argument = leaf_argument(leaf, pair);
  const double slope = info.slope(argument, leaf.own());
  for (Index k = 0; k < leaf.num_inputs() && !leaf.lengthscales.empty(); ++k)
    out[leaf.lengthscale_index(k)] += distance ? -2 * slope * squared_difference(leaf, pair, k)
                                               : scaled_product(leaf, pair, k, -2 * slope);
  if (info.has_shape())
    out[leaf.lengthscales.size()] = info.shape_slope != nullptr
                                        ? info.shape_slope(argument, slope, leaf.own())
                                        : period_derivative(leaf, pair, slope);
  return value;
}

double node_value(const Node& node, const PointPair& pair) {
  switch (node.kind) {
    case Node::Kind::leaf:
      return leaf_value(node.leaf, pair);
    case Node::Kind::scale:
      return node.variance * node_value(node.children[0], pair);
    case Node::Kind::sum: {
      double sum = 0;
      for (const auto& child : node.children) sum += node_value(child, pair);
      return sum;
    }
    case Node::Kind::product: {
      double product = 1;
      for (const auto& child : node.children) product *= node_value(child, pair);
      return product;
    }
  }
  return 0;
}

double node_gradient(const Node& node, const PointPair& pair, double* out);

double product_gradient(const Node& node, const PointPair& pair, double* out) {
  std::vector<double> values;
  double* cursor = out;
  for (const auto& child : node.children) {
    values.push_back(node_gradient(child, pair, cursor));
    cursor += child.num_parameters();
  }
  double product = 1;
  for (const double value : values) product *= value;
  for (std::size_t i = 0; i < values.size(); ++i) {
    double others = 1;
    for (std::size_t j = 0; j < values.size(); ++j)
      if (j != i) others *= values[j];
    const Index count = node.children[i].num_parameters();
    for (Index p = 0; p < count; ++p) out[p] *= others;
    out += count;
  }
  return product;
}

// Writes d node / d log parameter into out[0 .. count), returns the value. out starts as zeros.
double node_gradient(const Node& node, const PointPair& pair, double* out) {
  switch (node.kind) {
    case Node::Kind::leaf:
      return leaf_gradient(node.leaf, pair, out);
    case Node::Kind::scale: {
      const double value = node.variance * node_gradient(node.children[0], pair, out + 1);
      const Index count = node.num_parameters();
      for (Index p = 1; p < count; ++p) out[p] *= node.variance;
      out[0] = value;
      return value;
    }
    case Node::Kind::sum: {
      double sum = 0;
      for (const auto& child : node.children) {
        sum += node_gradient(child, pair, out);
        out += child.num_parameters();
      }
      return sum;
    }
    case Node::Kind::product:
      return product_gradient(node, pair, out);
  }
  return 0;
}

}  // namespace

double Kernel::evaluate(const double* a, Index stride_a, const double* b, Index stride_b) const {
  return node_value(root_, {a, stride_a, b, stride_b});
}

double Kernel::evaluate_with_gradient(const double* a, Index stride_a, const double* b,
                                      Index stride_b, VectorView gradient) const {
  gradient.setZero();
  return node_gradient(root_, {a, stride_a, b, stride_b}, gradient.data());
}

Vector Kernel::diagonal(ConstMatrixView x) const {
  Vector out(x.rows());
  for (Index i = 0; i < x.rows(); ++i) {
    const double* point = x.data() + i;
    out(i) = evaluate(point, x.outerStride(), point, x.outerStride());
  }
  return out;
}

Matrix Kernel::reference_matrix(ConstMatrixView a, ConstMatrixView b) const {
  if (a.cols() != num_inputs_ || b.cols() != num_inputs_)
    throw DimensionMismatch("kernel: columns of the points",
                            a.cols() != num_inputs_ ? a.cols() : b.cols(), "number of inputs",
                            num_inputs_);
  Matrix k(a.rows(), b.rows());
  for (Index j = 0; j < b.rows(); ++j)
    for (Index i = 0; i < a.rows(); ++i)
      k(i, j) = evaluate(a.data() + i, a.outerStride(), b.data() + j, b.outerStride());
  return k;
}

}  // namespace mercer::kernels
