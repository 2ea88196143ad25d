// The nearest earlier points: nearest_earlier and the metric of a kernel.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nanoflann.hpp>

#include "mercer/approximations/detail/smallest.hpp"
#include "mercer/approximations/neighbours.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"

namespace mercer::approximations {
namespace {

using kernels::LeafKind;
using kernels::Node;

constexpr Index tree_dimensions = 6;  // above, a kd-tree looks at most of the points anyway
constexpr Index tree_queries = 256;   // to a task
constexpr Index queries = 128;        // of a tile
constexpr Index tile = 512;           // earlier points of a tile

bool has_distance(const kernels::Leaf& leaf) {
  return leaf.kind != LeafKind::periodic && leaf.info().family == kernels::Family::distance;
}

void shortest_lengthscales(const Node& node, Index d, std::vector<double>& weights) {
  for (const Node& child : node.children) shortest_lengthscales(child, d, weights);
  if (node.kind != Node::Kind::leaf || !has_distance(node.leaf)) return;
  weights.resize(static_cast<std::size_t>(d), 0.0);
  for (Index c = 0; c < d; ++c) {
    double& weight = weights[static_cast<std::size_t>(c)];
    weight = std::max(weight, 1 / node.leaf.lengthscale(c));
  }
}

/// Tiles of |a|^2/2 - a.q, which orders the points a by their distance from q.
class Tiles {
 public:
  explicit Tiles(const PointColumns& z) : d_(z.rows()), earlier_(d_ + 1, z.cols()) {
    earlier_.topRows(d_) = z;
    for (Index i = 0; i < z.cols(); ++i) earlier_(d_, i) = z.col(i).squaredNorm() / 2;
  }
  Index size() const { return earlier_.cols(); }

  /// out: count x query_count.
  void evaluate(Index first, Index count, Index first_query, Index query_count, float* out) const {
    PointColumns q = -earlier_.middleCols(first_query, query_count);
    q.row(d_).setOnes();
    linalg::small_transposed_product<float>(d_ + 1, count, query_count, earlier_.col(first).data(),
                                            q.data(), out);
  }

 private:
  Index d_;
  PointColumns earlier_;  // one more row: |a|^2/2
};

void search_tiles(const PointColumns& z, Neighbours& result) {
  const Tiles tiles(z);
  const Index n = z.cols(), blocks = (n + queries - 1) / queries;
  const auto body = [&](Index task, int) {
    // The long tasks first: the last points have the most before them.
    const Index begin = (blocks - 1 - task) * queries, end = std::min(n, begin + queries);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(end - begin),
                                       detail::Smallest(result.most));
    std::vector<float> values(static_cast<std::size_t>(tile * queries));
    for (Index first = 0; first < end; first += tile) {
      const Index count = std::min(tile, end - first);
      tiles.evaluate(first, count, begin, end - begin, values.data());
      for (Index i = begin; i < end; ++i)
        best[static_cast<std::size_t>(i - begin)].add(values.data() + (i - begin) * count, first,
                                                      std::min(count, i - first));
    }
    for (Index i = begin; i < end; ++i)
      best[static_cast<std::size_t>(i - begin)].write(result.index.data() + i * result.most);
  };
  parallel_for(blocks, std::ref(body));
}

/// What nanoflann asks of a set of points.
struct Cloud {
  const PointColumns& z;
  std::size_t kdtree_get_point_count() const { return static_cast<std::size_t>(z.cols()); }
  float kdtree_get_pt(std::size_t i, std::size_t c) const {
    return z(static_cast<Index>(c), static_cast<Index>(i));
  }
  template <class Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

/// What nanoflann asks of a set of results: here only points before `query` are let in.
class EarlierSet {
 public:
  EarlierSet(Index most, Index query) : query_(query), best_(most) {}
  std::size_t size() const { return best_.size(); }
  bool full() const { return best_.full(); }
  bool addPoint(float distance, std::uint32_t index) {
    if (static_cast<Index>(index) < query_) best_.add_one(distance, static_cast<Index>(index));
    return true;
  }
  float worstDist() const { return best_.threshold(); }
  const detail::BoundedHeap& best() const { return best_; }

 private:
  Index query_;
  detail::BoundedHeap best_;
};

void search_tree(const PointColumns& z, Neighbours& result) {
  using Metric = nanoflann::L2_Simple_Adaptor<float, Cloud>;
  using Tree = nanoflann::KDTreeSingleIndexAdaptor<Metric, Cloud, -1, std::uint32_t>;
  const Cloud cloud{z};
  const Tree tree(static_cast<int>(z.rows()), cloud, nanoflann::KDTreeSingleIndexAdaptorParams(16));
  const Index n = z.cols(), tasks = (n + tree_queries - 1) / tree_queries;
  const auto body = [&](Index task, int) {
    const Index end = std::min(n, (task + 1) * tree_queries);
    for (Index i = std::max<Index>(1, task * tree_queries); i < end; ++i) {
      EarlierSet found(result.count(i), i);
      tree.findNeighbors(found, z.col(i).data(), nanoflann::SearchParams());
      found.best().write(result.index.data() + i * result.most);
    }
  };
  parallel_for(tasks, std::ref(body));
}

}  // namespace

bool falls_with_distance(const kernels::Kernel& kernel) {
  const Node* node = &kernel.root();
  while (node->kind == Node::Kind::scale) node = node->children.data();
  return node->kind == Node::Kind::leaf && has_distance(node->leaf);
}

PointColumns scaled_points(const kernels::Kernel& kernel, ConstMatrixView x) {
  std::vector<double> weights;
  shortest_lengthscales(kernel.root(), x.cols(), weights);
  const auto d = static_cast<Index>(weights.size());
  if (d == 0 || x.rows() == 0) return PointColumns(0, x.rows());
  Vector middle(d);
  double largest = std::numeric_limits<double>::min();
  for (Index c = 0; c < d; ++c) {
    const double low = x.col(c).minCoeff(), high = x.col(c).maxCoeff();
    middle(c) = low + (high - low) / 2;
    largest = std::max(largest, (high - low) * weights[static_cast<std::size_t>(c)]);
  }
  PointColumns z(d, x.rows());
  for (Index c = 0; c < d; ++c)
    z.row(c) = ((x.col(c).array() - middle(c)) * (weights[static_cast<std::size_t>(c)] / largest))
                   .cast<float>()
                   .matrix()
                   .transpose();
  return z;
}

Neighbours nearest_earlier(const PointColumns& z, Index count) {
  Neighbours result;
  result.points = z.cols();
  result.most = std::max<Index>(0, std::min(count, z.cols() - 1));
  result.index.resize(static_cast<std::size_t>(result.most * result.points));
  if (result.most == 0) return result;
  if (z.rows() <= tree_dimensions)
    search_tree(z, result);
  else
    search_tiles(z, result);
  return result;
}

}  // namespace mercer::approximations
