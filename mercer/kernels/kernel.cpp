#include "mercer/kernels/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <type_traits>

#include "mercer/core/error.hpp"

namespace mercer::kernels {
namespace {

namespace scalar {
using std::exp;
using std::log1p;
using std::max;
using std::sqrt;
double pow_int(double base, int exponent) { return std::pow(base, exponent); }
#include "mercer/kernels/profiles-inl.hpp"
}  // namespace scalar

// Calls visit(Profile{}) with the distance profile of a leaf; periodic is Rbf on its own features.
template <class Visitor>
double with_distance_profile(LeafKind kind, Visitor&& visit) {
  switch (kind) {
    case LeafKind::matern12:
      return visit(scalar::Matern12{});
    case LeafKind::matern32:
      return visit(scalar::Matern32{});
    case LeafKind::matern52:
      return visit(scalar::Matern52{});
    case LeafKind::rq:
      return visit(scalar::RationalQuadratic{});
    default:
      return visit(scalar::Rbf{});
  }
}

template <class Visitor>
double with_dot_profile(LeafKind kind, Visitor&& visit) {
  return kind == LeafKind::linear ? visit(scalar::Linear{}) : visit(scalar::Polynomial{});
}

struct PointPair {
  const double* a;
  Index stride_a;
  const double* b;
  Index stride_b;
  Index num_inputs;
  double x(Index c) const { return a[c * stride_a]; }
  double y(Index c) const { return b[c * stride_b]; }
  double difference(Index c) const { return x(c) - y(c); }
};

// The squared feature difference of input c: what its lengthscale scales.
double squared_difference(const Leaf& leaf, const PointPair& pair, Index c) {
  double u = pair.difference(c);
  if (leaf.kind == LeafKind::periodic) u = 2 * std::sin(std::numbers::pi * u / leaf.shape);
  u /= leaf.lengthscale(c);
  return u * u;
}

// r2 of the distance family, s of the dot family.
double leaf_argument(const Leaf& leaf, const PointPair& pair) {
  double sum = 0;
  if (leaf.info().family == Family::distance) {
    for (Index c = 0; c < pair.num_inputs; ++c) sum += squared_difference(leaf, pair, c);
  } else {
    for (Index c = 0; c < pair.num_inputs; ++c) {
      const double l = leaf.lengthscale(c);
      sum += (pair.x(c) / l) * (pair.y(c) / l);
    }
  }
  return sum;
}

double leaf_value(const Leaf& leaf, const PointPair& pair) {
  if (leaf.info().family == Family::constant) return 1.0;
  const double t = leaf_argument(leaf, pair);
  if (leaf.info().family == Family::distance)
    return with_distance_profile(leaf.kind,
                                 [&](auto p) { return decltype(p)::profile(t, leaf.shape); });
  return with_dot_profile(leaf.kind,
                          [&](auto p) { return decltype(p)::profile(t, leaf.shape, leaf.degree); });
}

// Adds value `derivative` of input c to the lengthscale it belongs to.
void add_to_lengthscale(const Leaf& leaf, Index c, double derivative, double* out) {
  if (leaf.lengthscales.empty()) return;
  out[leaf.lengthscales.size() == 1 ? 0 : c] += derivative;
}

double distance_leaf_gradient(const Leaf& leaf, const PointPair& pair, double* out) {
  const double r2 = leaf_argument(leaf, pair);
  const double value = leaf_value(leaf, pair);
  const double slope =
      with_distance_profile(leaf.kind, [&](auto p) { return decltype(p)::slope(r2, leaf.shape); });
  for (Index c = 0; c < pair.num_inputs; ++c)
    add_to_lengthscale(leaf, c, -2 * slope * squared_difference(leaf, pair, c), out);
  double* shape_out = out + leaf.lengthscales.size();
  if (leaf.kind == LeafKind::rq)
    *shape_out = scalar::RationalQuadratic::shape_slope(r2, leaf.shape);
  if (leaf.kind == LeafKind::periodic) {
    // dk/dlog p = k sum_c (2 pi dx / (p l^2)) sin(2 pi dx / p)
    double sum = 0;
    for (Index c = 0; c < pair.num_inputs; ++c) {
      const double l = leaf.lengthscale(c);
      const double phase = 2 * std::numbers::pi * pair.difference(c) / leaf.shape;
      sum += phase * std::sin(phase) / (l * l);
    }
    *shape_out = value * sum;
  }
  return value;
}

double dot_leaf_gradient(const Leaf& leaf, const PointPair& pair, double* out) {
  const double s = leaf_argument(leaf, pair);
  const double slope = with_dot_profile(
      leaf.kind, [&](auto p) { return decltype(p)::slope(s, leaf.shape, leaf.degree); });
  for (Index c = 0; c < pair.num_inputs; ++c) {
    const double l = leaf.lengthscale(c);
    add_to_lengthscale(leaf, c, -2 * slope * (pair.x(c) / l) * (pair.y(c) / l), out);
  }
  if (leaf.has_shape()) out[leaf.lengthscales.size()] = slope * leaf.shape;
  return leaf_value(leaf, pair);
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

Index count_parameters(const Node& node) {
  Index count = node.kind == Node::Kind::scale ? 1 : 0;
  if (node.kind == Node::Kind::leaf) count = node.leaf.num_parameters();
  for (const auto& child : node.children) count += count_parameters(child);
  return count;
}

// Writes d node / d log parameter into out[0 .. count), returns the value. out starts as zeros.
double node_gradient(const Node& node, const PointPair& pair, double* out) {
  switch (node.kind) {
    case Node::Kind::leaf:
      switch (node.leaf.info().family) {
        case Family::distance:
          return distance_leaf_gradient(node.leaf, pair, out);
        case Family::dot:
          return dot_leaf_gradient(node.leaf, pair, out);
        case Family::constant:
          return 1.0;
      }
      return 0;
    case Node::Kind::scale: {
      const double value = node.variance * node_gradient(node.children[0], pair, out + 1);
      const Index count = count_parameters(node);
      for (Index p = 1; p < count; ++p) out[p] *= node.variance;
      out[0] = value;
      return value;
    }
    case Node::Kind::sum: {
      double sum = 0;
      for (const auto& child : node.children) {
        sum += node_gradient(child, pair, out);
        out += count_parameters(child);
      }
      return sum;
    }
    case Node::Kind::product: {
      std::vector<double> values;
      double* cursor = out;
      for (const auto& child : node.children) {
        values.push_back(node_gradient(child, pair, cursor));
        cursor += count_parameters(child);
      }
      double product = 1;
      for (const double value : values) product *= value;
      for (std::size_t i = 0; i < values.size(); ++i) {
        double others = 1;
        for (std::size_t j = 0; j < values.size(); ++j)
          if (j != i) others *= values[j];
        const Index count = count_parameters(node.children[i]);
        for (Index p = 0; p < count; ++p) out[p] *= others;
        out += count;
      }
      return product;
    }
  }
  return 0;
}

enum class ParameterRole { variance, lengthscale, shape };

// Calls visit(role, name, value) for every parameter in order; value may be written.
template <class NodeType, class Visitor>
void visit_parameters(NodeType& node, bool numbered, int& scales, int& leaves, Visitor& visit) {
  const auto suffix = [&](int index) { return numbered ? std::to_string(index) : std::string(); };
  if (node.kind == Node::Kind::scale) {
    visit(ParameterRole::variance, "signal_variance" + suffix(++scales), node.variance);
  } else if (node.kind == Node::Kind::leaf) {
    auto& leaf = node.leaf;
    ++leaves;
    const std::string prefix =
        numbered ? fmt::format("{}_{}.", leaf.info().name, leaves) : std::string();
    for (std::size_t c = 0; c < leaf.lengthscales.size(); ++c)
      visit(ParameterRole::lengthscale,
            leaf.ard ? fmt::format("{}lengthscale[{}]", prefix, c) : prefix + "lengthscale",
            leaf.lengthscales[c]);
    if (leaf.has_shape())
      visit(ParameterRole::shape, prefix + std::string(leaf.info().shape_name), leaf.shape);
  }
  for (auto& child : node.children) visit_parameters(child, numbered, scales, leaves, visit);
}

int count_leaves(const Node& node) {
  if (node.kind == Node::Kind::leaf) return 1;
  int count = 0;
  for (const auto& child : node.children) count += count_leaves(child);
  return count;
}

template <class NodeType, class Visitor>
void visit_parameters(NodeType& root, Visitor visit) {
  int scales = 0;
  int leaves = 0;
  visit_parameters(root, count_leaves(root) > 1, scales, leaves, visit);
}

template <class Test>
bool every_leaf(const Node& node, const Test& test) {
  if (node.kind == Node::Kind::leaf) return test(node.leaf);
  return std::all_of(node.children.begin(), node.children.end(),
                     [&](const Node& child) { return every_leaf(child, test); });
}

template <class Change>
void change_leaves(Node& node, const Change& change) {
  if (node.kind == Node::Kind::leaf) change(node.leaf);
  for (auto& child : node.children) change_leaves(child, change);
}

}  // namespace

Kernel::Kernel(Node root, Index num_inputs) : root_(std::move(root)), num_inputs_(num_inputs) {
  if (num_inputs < 1) throw InvalidArgument("kernel: the number of inputs must be at least 1");
  every_leaf(root_, [&](const Leaf& leaf) {
    const auto count = static_cast<Index>(leaf.lengthscales.size());
    if (count > 1 && count != num_inputs)
      throw DimensionMismatch(fmt::format("kernel: lengthscales of {}", leaf.info().name), count,
                              "number of inputs", num_inputs);
    return true;
  });
}

bool Kernel::stationary() const {
  return every_leaf(root_, [](const Leaf& leaf) { return leaf.info().family != Family::dot; });
}

Index Kernel::num_leaves() const { return count_leaves(root_); }

Index Kernel::num_parameters() const { return count_parameters(root_); }

std::vector<std::string> Kernel::parameter_names() const {
  std::vector<std::string> names;
  visit_parameters(
      root_, [&](ParameterRole, std::string name, double) { names.push_back(std::move(name)); });
  return names;
}

std::vector<bool> Kernel::is_lengthscale() const {
  std::vector<bool> out;
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double) {
    out.push_back(role == ParameterRole::lengthscale);
  });
  return out;
}

std::vector<bool> Kernel::is_variance() const {
  std::vector<bool> out;
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double) {
    out.push_back(role == ParameterRole::variance);
  });
  return out;
}

Vector Kernel::log_parameters() const {
  Vector theta(num_parameters());
  Index p = 0;
  visit_parameters(root_, [&](ParameterRole, const std::string&, double value) {
    theta(p++) = std::log(value);
  });
  return theta;
}

void Kernel::set_log_parameters(ConstVectorView theta) {
  if (theta.size() != num_parameters())
    throw DimensionMismatch("kernel: length of theta", theta.size(), "number of parameters",
                            num_parameters());
  Index p = 0;
  visit_parameters(root_, [&](ParameterRole, const std::string&, double& value) {
    value = std::exp(theta(p++));
  });
}

void Kernel::set_all_lengthscales(double value) {
  change_leaves(root_, [&](Leaf& leaf) {
    std::fill(leaf.lengthscales.begin(), leaf.lengthscales.end(), value);
  });
}

void Kernel::set_all_variances(double value) {
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double& parameter) {
    if (role == ParameterRole::variance) parameter = value;
  });
}

void Kernel::scale_start_values(double variance, const std::vector<double>& lengthscales) {
  double mean = 0;
  for (const double l : lengthscales) mean += l / static_cast<double>(lengthscales.size());
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double& value) {
    if (role == ParameterRole::variance && value == 1.0) value = variance;
  });
  change_leaves(root_, [&](Leaf& leaf) {
    // Periodic lengthscales are on the circle of the period, not on the scale of the inputs.
    if (leaf.kind == LeafKind::periodic) return;
    for (std::size_t c = 0; c < leaf.lengthscales.size(); ++c)
      if (leaf.lengthscales[c] == 1.0) leaf.lengthscales[c] = leaf.ard ? lengthscales[c] : mean;
  });
}

void Kernel::set_lengthscales(const std::vector<double>& values) {
  if (values.size() == 1) return set_all_lengthscales(values[0]);
  if (static_cast<Index>(values.size()) != num_inputs_)
    throw DimensionMismatch("kernel: number of lengthscales given",
                            static_cast<Index>(values.size()), "number of inputs", num_inputs_);
  change_leaves(root_, [&](Leaf& leaf) {
    if (leaf.lengthscales.size() == 1 && !leaf.ard)
      throw InvalidArgument(fmt::format("kernel: {}:iso has one lengthscale, but {} were given",
                                        leaf.info().name, values.size()));
    if (!leaf.lengthscales.empty()) leaf.lengthscales = values;
  });
}

double Kernel::evaluate(const double* a, Index stride_a, const double* b, Index stride_b) const {
  return node_value(root_, {a, stride_a, b, stride_b, num_inputs_});
}

double Kernel::evaluate_with_gradient(const double* a, Index stride_a, const double* b,
                                      Index stride_b, VectorView gradient) const {
  gradient.setZero();
  return node_gradient(root_, {a, stride_a, b, stride_b, num_inputs_}, gradient.data());
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
