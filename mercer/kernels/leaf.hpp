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
  std::vector<double> lengthscales;      // empty, one, or one per input (or group of inputs)
  bool lengthscale_written = false;      // the expression has its value, which start values leave
  double shape = 0;                      // of leaves that have one
  std::vector<Index> inputs;             // columns that the leaf sees, ascending
  std::vector<std::string> input_names;  // as the expression has them; empty: all inputs
  /// Where inputs share a lengthscale (`iso(x,y)`): which one each input has, and the names of
  /// those that share one as an expression writes them. Empty: one lengthscale each.
  std::vector<Index> group;
  std::vector<std::vector<std::string>> shared_names;

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
    return lengthscales[static_cast<std::size_t>(lengthscale_index(k))];
  }
  /// Which of the lengthscales input k of the leaf has.
  Index lengthscale_index(Index k) const {
    if (lengthscales.size() <= 1) return 0;
    return group.empty() ? k : group[static_cast<std::size_t>(k)];
  }
  /// One lengthscale for those of these columns that the leaf sees; `names` are their names in an
  /// expression. False, and nothing is changed, when it sees fewer than two of them or has no
  /// lengthscales. Throws InvalidArgument when one of them shares its lengthscale with others.
  bool share_lengthscale(const std::vector<Index>& columns, const std::vector<std::string>& names);
  /// One for every input of the leaf.
  std::vector<double> all_lengthscales() const {
    std::vector<double> out;
    for (Index k = 0; k < num_inputs(); ++k) out.push_back(lengthscale(k));
    return out;
  }
};

}  // namespace mercer::kernels
MERCER_API_END
