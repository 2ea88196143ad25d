#include "mercer/models/hyperparameters.hpp"

namespace mercer::models {
namespace {

using kernels::Node;

void collect_leaves(const Node& node, std::vector<LeafValues>& leaves) {
  for (const auto& child : node.children) collect_leaves(child, leaves);
  if (node.kind != Node::Kind::leaf) return;
  const auto& leaf = node.leaf;
  LeafValues values;
  values.kernel = leaf.info().name;
  values.inputs = leaf.inputs;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    if (!leaf.lengthscales.empty()) {
      values.lengthscales.push_back(leaf.lengthscale(k));
      values.shared.push_back(leaf.lengthscale_index(k));
    }
    if (leaf.info().inputs == kernels::InputMap::circle) values.periods.push_back(leaf.shape);
  }
  leaves.push_back(std::move(values));
}

// The outer terms are scale nodes: under a sum, or the root itself.
double sum_of_variances(const Node& root) {
  if (root.kind == Node::Kind::scale) return root.variance;
  double sum = 0;
  if (root.kind == Node::Kind::sum)
    for (const auto& term : root.children) sum += sum_of_variances(term);
  return root.kind == Node::Kind::sum ? sum : 1.0;
}

}  // namespace

std::vector<double> Hyperparameters::lengthscales() const {
  for (const auto& leaf : leaves)
    if (!leaf.lengthscales.empty()) return leaf.lengthscales;
  return {};
}

Hyperparameters standardised(const inference::Problem& problem) {
  Hyperparameters out;
  out.signal_variance = sum_of_variances(problem.kernel.root());
  out.noise_variance = problem.likelihood->gaussian_noise();
  collect_leaves(problem.kernel.root(), out.leaves);
  return out;
}

Hyperparameters original(const inference::Problem& problem, const data::Scaling& scaling) {
  Hyperparameters out = standardised(problem);
  const double unit = scaling.target_sd * scaling.target_sd;
  out.signal_variance *= unit;
  if (out.noise_variance) *out.noise_variance *= unit;
  for (auto& leaf : out.leaves) {
    auto& with_unit = leaf.periods.empty() ? leaf.lengthscales : leaf.periods;
    for (std::size_t k = 0; k < with_unit.size(); ++k)
      with_unit[k] *= scaling.input_sd[leaf.inputs[k]];
  }
  return out;
}

}  // namespace mercer::models
