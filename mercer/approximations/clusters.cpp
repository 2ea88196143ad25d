#include "mercer/approximations/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::approximations {
namespace {

/// Blocks first .. last - 1, not yet told apart.
struct Group {
  Index first, last;
};

Index widest_axis(ConstMatrixView points, ConstVectorView scales, std::span<const Index> members) {
  Index widest = 0;
  double width = -1;
  for (Index c = 0; c < points.cols(); ++c) {
    const double* x = points.col(c).data();
    double low = x[members[0]], high = low;
    for (const Index i : members) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    if ((high - low) / scales(c) > width) {
      width = (high - low) / scales(c);
      widest = c;
    }
  }
  return widest;
}

/// Puts the `left` smallest along the widest axis first. Equal values are told apart by index, so
/// which points these are does not depend on how they are found.
void split(ConstMatrixView points, ConstVectorView scales, std::span<Index> members, Index left) {
  if (points.cols() == 0) {
    std::sort(members.begin(), members.end());
    return;
  }
  const double* x = points.col(widest_axis(points, scales, members)).data();
  std::nth_element(members.begin(), members.begin() + left, members.end(),
                   [x](Index a, Index b) { return x[a] != x[b] ? x[a] < x[b] : a < b; });
}

// Of every input, the shortest lengthscale of a leaf that measures distances in it (infinity: there
// is none), and whether any leaf sees it at all.
struct Scales {
  Vector shortest;
  std::vector<char> seen;
};

void collect(const kernels::Node& node, Scales& scales) {
  for (const auto& child : node.children) collect(child, scales);
  if (node.kind != kernels::Node::Kind::leaf) return;
  const auto& leaf = node.leaf;
  for (Index k = 0; k < leaf.num_inputs(); ++k) {
    double& shortest = scales.shortest(leaf.column(k));
    scales.seen[static_cast<std::size_t>(leaf.column(k))] = 1;
    if (leaf.info().measures_distance()) shortest = std::min(shortest, leaf.lengthscale(k));
  }
}

}  // namespace

Index Clusters::largest() const {
  Index size = 0;
  for (Index b = 0; b < count(); ++b) size = std::max(size, static_cast<Index>(block(b).size()));
  return size;
}

Vector shortest_lengthscales(const kernels::Kernel& kernel) {
  const double none = std::numeric_limits<double>::infinity();
  const Index d = kernel.num_inputs();
  Scales scales{Vector::Constant(d, none), std::vector<char>(static_cast<std::size_t>(d), 0)};
  collect(kernel.root(), scales);
  // A constant kernel sees no input, and then none is more important than another.
  const bool any = std::find(scales.seen.begin(), scales.seen.end(), 1) != scales.seen.end();
  for (Index c = 0; c < d; ++c)
    if (scales.shortest(c) == none && (!any || scales.seen[static_cast<std::size_t>(c)] != 0))
      scales.shortest(c) = 1;
  return scales.shortest;
}

Clusters clusters(ConstMatrixView points, ConstVectorView scales, Index blocks) {
  if (blocks < 1)
    throw InvalidArgument(fmt::format("clusters: {} blocks, but must be at least 1", blocks));
  if (scales.size() != points.cols())
    throw DimensionMismatch("clusters: number of scales", scales.size(), "columns of points",
                            points.cols());
  const Index n = points.rows(), count = std::clamp<Index>(n, 1, blocks);
  Clusters result;
  result.order.resize(static_cast<std::size_t>(n));
  std::iota(result.order.begin(), result.order.end(), Index{0});
  for (Index b = 0; b <= count; ++b) result.offsets.push_back(b * n / count);

  std::vector<Group> groups = {{0, count}}, next;
  const auto members = [&](const Group& g) {
    const auto at = [&](Index b) { return result.offsets[static_cast<std::size_t>(b)]; };
    return std::span(result.order)
        .subspan(static_cast<std::size_t>(at(g.first)),
                 static_cast<std::size_t>(at(g.last) - at(g.first)));
  };
  while (!groups.empty()) {
    const auto body = [&](Index task, int) {
      const Group g = groups[static_cast<std::size_t>(task)];
      if (g.last - g.first == 1) {
        const auto block = members(g);
        std::sort(block.begin(), block.end());
        return;
      }
      const Group left = {g.first, (g.first + g.last) / 2};
      split(points, scales, members(g), static_cast<Index>(members(left).size()));
    };
    parallel_for(static_cast<Index>(groups.size()), std::ref(body));
    next.clear();
    for (const Group& g : groups) {
      if (g.last - g.first == 1) continue;
      const Index middle = (g.first + g.last) / 2;
      next.push_back({g.first, middle});
      next.push_back({middle, g.last});
    }
    std::swap(groups, next);
  }
  return result;
}

Clusters clusters(const kernels::Kernel& kernel, ConstMatrixView points, Index blocks) {
  return clusters(points, shortest_lengthscales(kernel), blocks);
}

}  // namespace mercer::approximations
