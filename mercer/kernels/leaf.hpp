// A leaf of a kernel expression with its values.
#pragma once

#include <string>
#include <vector>

#include "mercer/kernels/registry.hpp"

MERCER_API_BEGIN
namespace mercer::kernels {

struct Leaf {
  LeafKind kind = LeafKind{0};
  bool ard = true;
  int degree = 1;                        // of leaves that have one
  std::vector<double> lengthscales;      // empty, one, or one per input that the leaf sees
  double shape = 0;                      // of leaves that have one
  std::vector<Index> inputs;             // columns that the leaf sees, ascending
  std::vector<std::string> input_names;  // as the expression has them; empty: all inputs

  const LeafInfo& info() const { return leaf_info(kind); }
  OwnNumbers own() const { return {shape, degree}; }
  Index num_inputs() const { return static_cast<Index>(inputs.size()); }
  Index num_parameters() const {
    return static_cast<Index>(lengthscales.size()) + (info().has_shape() ? 1 : 0);
  }
  /// The column of the data that input k of the leaf is.
  Index column(Index k) const { return inputs[static_cast<std::size_t>(k)]; }
  /// The lengthscale of input k of the leaf: 1 when the leaf has none.
  double lengthscale(Index k) const {
    if (lengthscales.empty()) return 1.0;
    return lengthscales.size() == 1 ? lengthscales[0] : lengthscales[static_cast<std::size_t>(k)];
  }
  /// One for every input of the leaf.
  std::vector<double> all_lengthscales() const {
    std::vector<double> out;
    for (Index k = 0; k < num_inputs(); ++k) out.push_back(lengthscale(k));
    return out;
  }
};

}  // namespace mercer::kernels
MERCER_API_END
