// Balanced blocks of nearby points, by a kd-tree: the widest axis is cut at its median, again and
// again.
//   Source: Friedman, Bentley & Finkel (1977).
//   Cost:   N d log2(B) comparisons, 8 N bytes.
//   When not: many inputs that all matter (above 10 or so): blocks are then near in few of them.
#pragma once

#include <span>
#include <vector>

#include "mercer/kernels/kernel.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

/// A partition of 0 .. N - 1.
struct Clusters {
  std::vector<Index> order;    // the points, block after block, ascending within a block
  std::vector<Index> offsets;  // block b is order[offsets[b]] .. order[offsets[b + 1] - 1]

  Index count() const { return static_cast<Index>(offsets.size()) - 1; }
  std::span<const Index> block(Index b) const {
    return std::span(order).subspan(first(b), first(b + 1) - first(b));
  }
  Index largest() const;

 private:
  std::size_t first(Index b) const {
    return static_cast<std::size_t>(offsets[static_cast<std::size_t>(b)]);
  }
};

/// `blocks` blocks whose sizes differ by one at most; never more blocks than points. Distances are
/// those of the inputs divided by `scales` (one per column of points). Ties go to the first point.
Clusters clusters(ConstMatrixView points, ConstVectorView scales, Index blocks);
/// The same in the space that the kernel sees.
Clusters clusters(const kernels::Kernel& kernel, ConstMatrixView points, Index blocks);

/// For each input the shortest lengthscale among the leaves that fall off with distance; 1 when
/// other leaves see it (periodic, linear, poly), and infinity when only other inputs are seen.
Vector shortest_lengthscales(const kernels::Kernel& kernel);

}  // namespace mercer::approximations
MERCER_API_END
