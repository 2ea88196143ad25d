#include "mercer/kernels/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer::kernels {
namespace {

enum class ParameterRole { variance, lengthscale, shape };

// The inputs that have this lengthscale: "2", or "0,1" where they share it.
std::string inputs_of(const Leaf& leaf, std::size_t lengthscale) {
  std::vector<Index> inputs;
  for (Index k = 0; k < leaf.num_inputs(); ++k)
    if (leaf.lengthscale_index(k) == static_cast<Index>(lengthscale))
      inputs.push_back(leaf.column(k));
  return fmt::format("{}", fmt::join(inputs, ","));
}

// Calls visit(role, name, value, leaf) for every parameter in order; value may be written. The leaf
// is null for the variance of a term.
template <class NodeType, class Visitor>
void visit_parameters(NodeType& node, bool numbered, int& scales, int& leaves, Visitor& visit) {
  const auto suffix = [&](int index) { return numbered ? std::to_string(index) : std::string(); };
  if (node.kind == Node::Kind::scale) {
    visit(ParameterRole::variance, "signal_variance" + suffix(++scales), node.variance,
          static_cast<const Leaf*>(nullptr));
  } else if (node.kind == Node::Kind::leaf) {
    auto& leaf = node.leaf;
    ++leaves;
    const std::string prefix =
        numbered ? fmt::format("{}_{}.", leaf.info().name, leaves) : std::string();
    for (std::size_t k = 0; k < leaf.lengthscales.size(); ++k)
      visit(ParameterRole::lengthscale,
            leaf.ard ? fmt::format("{}lengthscale[{}]", prefix, inputs_of(leaf, k))
                     : prefix + "lengthscale",
            leaf.lengthscales[k], static_cast<const Leaf*>(&leaf));
    if (leaf.info().has_shape())
      visit(ParameterRole::shape, prefix + std::string(leaf.info().shape.name), leaf.shape,
            static_cast<const Leaf*>(&leaf));
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

template <class Change>
void change_scales(Node& node, const Change& change) {
  if (node.kind == Node::Kind::scale) change(node);
  for (auto& child : node.children) change_scales(child, change);
}

// A leaf that names no inputs sees all; the constant leaf sees none.
void settle_inputs(Leaf& leaf, Index num_inputs) {
  const auto& info = leaf.info();
  if (info.family == Family::constant) {
    leaf.inputs.clear();
    return;
  }
  if (leaf.inputs.empty()) {
    leaf.inputs.resize(static_cast<std::size_t>(num_inputs));
    std::iota(leaf.inputs.begin(), leaf.inputs.end(), Index{0});
  }
  const bool ascending = std::adjacent_find(leaf.inputs.begin(), leaf.inputs.end(),
                                            std::greater_equal<>()) == leaf.inputs.end();
  if (!ascending || leaf.inputs.front() < 0 || leaf.inputs.back() >= num_inputs)
    throw InvalidArgument(
        fmt::format("kernel: the inputs of {} must be ascending column numbers below {}", info.name,
                    num_inputs));
  const auto count = static_cast<Index>(leaf.lengthscales.size());
  const Index groups = leaf.group.empty()
                           ? leaf.num_inputs()
                           : 1 + *std::max_element(leaf.group.begin(), leaf.group.end());
  if (count > 1 && count != groups)
    throw DimensionMismatch(fmt::format("kernel: lengthscales of {}", info.name), count,
                            "number of its inputs", groups);
}

}  // namespace

Index Node::num_parameters() const {
  Index count = kind == Kind::scale ? 1 : 0;
  if (kind == Kind::leaf) count = leaf.num_parameters();
  for (const auto& child : children) count += child.num_parameters();
  return count;
}

Kernel::Kernel(Node root, Index num_inputs) : root_(std::move(root)), num_inputs_(num_inputs) {
  if (num_inputs < 1) throw InvalidArgument("kernel: the number of inputs must be at least 1");
  change_leaves(root_, [&](Leaf& leaf) { settle_inputs(leaf, num_inputs); });
}

bool Kernel::stationary() const {
  return every_leaf(root_, [](const Leaf& leaf) { return leaf.info().family != Family::dot; });
}

Index Kernel::num_leaves() const { return count_leaves(root_); }

Index Kernel::num_parameters() const { return root_.num_parameters(); }

std::vector<std::string> Kernel::parameter_names() const {
  std::vector<std::string> names;
  visit_parameters(root_, [&](ParameterRole, std::string name, double, const Leaf*) {
    names.push_back(std::move(name));
  });
  return names;
}

std::vector<bool> Kernel::is_lengthscale() const {
  std::vector<bool> out;
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double, const Leaf*) {
    out.push_back(role == ParameterRole::lengthscale);
  });
  return out;
}

std::vector<bool> Kernel::is_variance() const {
  std::vector<bool> out;
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double, const Leaf*) {
    out.push_back(role == ParameterRole::variance);
  });
  return out;
}

void Kernel::narrow_to_limits(VectorView lower, VectorView upper) const {
  Index p = 0;
  visit_parameters(root_, [&](ParameterRole role, const std::string&, double, const Leaf* leaf) {
    if (role == ParameterRole::shape) {
      lower(p) = std::max(lower(p), std::log(leaf->info().shape.least));
      upper(p) = std::min(upper(p), std::log(leaf->info().shape.most));
    }
    ++p;
  });
}

Vector Kernel::log_parameters() const {
  Vector theta(num_parameters());
  Index p = 0;
  visit_parameters(root_, [&](ParameterRole, const std::string&, double value, const Leaf*) {
    theta(p++) = std::log(value);
  });
  return theta;
}

void Kernel::set_log_parameters(ConstVectorView theta) {
  if (theta.size() != num_parameters())
    throw DimensionMismatch("kernel: length of theta", theta.size(), "number of parameters",
                            num_parameters());
  Index p = 0;
  visit_parameters(root_, [&](ParameterRole, const std::string&, double& value, const Leaf*) {
    value = std::exp(theta(p++));
  });
}

bool Kernel::share_lengthscale(const std::vector<Index>& columns,
                               const std::vector<std::string>& names) {
  bool any = false;
  change_leaves(root_, [&](Leaf& leaf) { any = leaf.share_lengthscale(columns, names) || any; });
  return any;
}

void Kernel::set_all_lengthscales(double value) {
  change_leaves(root_, [&](Leaf& leaf) {
    std::fill(leaf.lengthscales.begin(), leaf.lengthscales.end(), value);
  });
}

void Kernel::set_all_variances(double value) {
  change_scales(root_, [&](Node& scale) { scale.variance = value; });
}

bool Kernel::writes_lengthscale() const {
  return !every_leaf(root_, [](const Leaf& leaf) { return !leaf.lengthscale_written; });
}

void Kernel::set_unwritten_lengthscales(double value) {
  change_leaves(root_, [&](Leaf& leaf) {
    if (!leaf.lengthscale_written)
      std::fill(leaf.lengthscales.begin(), leaf.lengthscales.end(), value);
  });
}

void Kernel::set_unwritten_variances(double value) {
  change_scales(root_, [&](Node& scale) {
    if (!scale.variance_written) scale.variance = value;
  });
}

void Kernel::set_given(const std::vector<double>& lengthscale,
                       std::optional<double> signal_variance) {
  const auto refuse = [&](const char* option, const char* what) {
    throw InvalidArgument(
        fmt::format("`{}` is given, and the kernel '{}' is written with a {} of its own; leave one "
                    "of the two out",
                    option, text(), what));
  };
  if (!lengthscale.empty()) {
    if (writes_lengthscale()) refuse("lengthscale", "lengthscale");
    if (every_leaf(root_, [](const Leaf& leaf) { return leaf.lengthscales.empty(); }))
      throw InvalidArgument(fmt::format(
          "the kernel '{}' has no lengthscale, so `lengthscale` has no meaning; leave it out",
          text()));
    set_lengthscales(lengthscale);
  }
  if (!signal_variance) return;
  change_scales(root_, [&](Node& scale) {
    if (scale.variance_written) refuse("signal_variance", "variance");
    scale.variance = *signal_variance;
  });
}

void Kernel::scale_start_values(double variance, const std::vector<double>& lengthscales) {
  change_scales(root_, [&](Node& scale) {
    if (!scale.variance_written && scale.variance == 1.0) scale.variance = variance;
  });
  change_leaves(root_, [&](Leaf& leaf) {
    // Lengthscales on the circle of a period are not on the scale of the inputs.
    if (leaf.info().inputs == InputMap::circle || leaf.lengthscale_written) return;
    // The values are sqrt(d) times a spread, at which typical pairs are correlated: of a leaf that
    // sees fewer inputs, d is their number.
    const double fewer =
        std::sqrt(static_cast<double>(leaf.num_inputs()) / static_cast<double>(num_inputs_));
    std::vector<double> squares(leaf.lengthscales.size()), inputs(leaf.lengthscales.size());
    for (Index k = 0; k < leaf.num_inputs() && !squares.empty(); ++k) {
      const auto g = static_cast<std::size_t>(leaf.lengthscale_index(k));
      const double value = lengthscales[static_cast<std::size_t>(leaf.column(k))];
      squares[g] = std::hypot(squares[g], value);  // squares may overflow
      ++inputs[g];
    }
    for (std::size_t g = 0; g < squares.size(); ++g)
      if (leaf.lengthscales[g] == 1.0)
        leaf.lengthscales[g] = fewer * squares[g] / std::sqrt(inputs[g]);
  });
}

void Kernel::set_lengthscales(const std::vector<double>& values) {
  if (values.size() == 1) return set_all_lengthscales(values[0]);
  if (static_cast<Index>(values.size()) != num_inputs_)
    throw DimensionMismatch(fmt::format(
        "`lengthscale` has {} values, but the kernel sees {} inputs; give one value for "
        "all, or one for each",
        values.size(), num_inputs_));
  change_leaves(root_, [&](Leaf& leaf) {
    if (leaf.lengthscales.size() == 1 && !leaf.ard)
      throw InvalidArgument(fmt::format("kernel: {}:iso has one lengthscale, but {} were given",
                                        leaf.info().name, values.size()));
    std::vector<bool> seen(leaf.lengthscales.size());
    for (Index k = 0; k < leaf.num_inputs() && !seen.empty(); ++k) {
      const auto g = static_cast<std::size_t>(leaf.lengthscale_index(k));
      const double value = values[static_cast<std::size_t>(leaf.column(k))];
      if (seen[g] && leaf.lengthscales[g] != value)
        throw InvalidArgument(
            fmt::format("kernel: inputs {} of {} share one lengthscale, but {} and {} were given",
                        inputs_of(leaf, g), leaf.info().name, leaf.lengthscales[g], value));
      leaf.lengthscales[g] = value;
      seen[g] = true;
    }
  });
}

}  // namespace mercer::kernels
