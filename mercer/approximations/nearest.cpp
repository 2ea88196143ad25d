// The nearest points, earlier ones or any: nearest_earlier, NearestPoints and the metric of a
// kernel.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nanoflann.hpp>
#include <optional>

#include "mercer/approximations/detail/smallest.hpp"
#include "mercer/approximations/neighbours.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"

namespace mercer::approximations {
namespace {

using kernels::Node;

constexpr Index tree_dimensions = 6;  // above, a kd-tree looks at most of the points anyway
constexpr Index tree_queries = 256;   // to a task
constexpr Index queries = 128;        // of a tile
constexpr Index tile = 512;           // earlier points of a tile

void shortest_lengthscales(const Node& node, Index d, std::vector<double>& weights) {
  for (const Node& child : node.children) shortest_lengthscales(child, d, weights);
  if (node.kind != Node::Kind::leaf || !node.leaf.info().measures_distance()) return;
  weights.resize(static_cast<std::size_t>(d), 0.0);
  for (Index k = 0; k < node.leaf.num_inputs(); ++k) {
    double& weight = weights[static_cast<std::size_t>(node.leaf.column(k))];
    weight = std::max(weight, 1 / node.leaf.lengthscale(k));
  }
}

/// Tiles of |a|^2/2 - a.q, which orders the points a by their distance from q.
class Tiles {
 public:
  explicit Tiles(const PointColumns& z) : d_(z.rows()), points_(d_ + 1, z.cols()) {
    points_.topRows(d_) = z;
    for (Index i = 0; i < z.cols(); ++i) points_(d_, i) = z.col(i).squaredNorm() / 2;
  }

  /// out: count x the number of queries, which are columns of q.
  void evaluate(Index first, Index count, Eigen::Ref<const PointColumns> q, float* out) const {
    PointColumns minus(d_ + 1, q.cols());
    minus << -q, PointColumns::Ones(1, q.cols());
    linalg::small_transposed_product<float>(d_ + 1, count, q.cols(), points_.col(first).data(),
                                            minus.data(), out);
  }

 private:
  Index d_;
  PointColumns points_;  // one more row: |a|^2/2
};

// In both searches query i may find the points before reach(i), and gets min(reach(i), most) of
// them, ascending, from out + i * most on.

template <class Reach>
void search_tiles(const Tiles& tiles, const PointColumns& q, const Reach& reach, Index most,
                  std::int32_t* out) {
  const Index m = q.cols(), blocks = (m + queries - 1) / queries;
  const auto body = [&](Index task, int) {
    // The long tasks first: the last points have the most before them.
    const Index begin = (blocks - 1 - task) * queries, end = std::min(m, begin + queries);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(end - begin),
                                       detail::Smallest(most));
    std::vector<float> values(static_cast<std::size_t>(tile * queries));
    for (Index first = 0; first < reach(end); first += tile) {
      const Index count = std::min(tile, reach(end) - first);
      tiles.evaluate(first, count, q.middleCols(begin, end - begin), values.data());
      for (Index i = begin; i < end; ++i)
        best[static_cast<std::size_t>(i - begin)].add(values.data() + (i - begin) * count, first,
                                                      std::min(count, reach(i) - first));
    }
    for (Index i = begin; i < end; ++i)
      best[static_cast<std::size_t>(i - begin)].write(out + i * most);
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

using Metric = nanoflann::L2_Simple_Adaptor<float, Cloud>;
using Tree = nanoflann::KDTreeSingleIndexAdaptor<Metric, Cloud, -1, std::uint32_t>;

/// What nanoflann asks of a set of results: here only points before `reach` are let in.
class ReachedSet {
 public:
  ReachedSet(Index most, Index reach) : reach_(reach), best_(most) {}
  std::size_t size() const { return best_.size(); }
  bool full() const { return best_.full(); }
  bool addPoint(float distance, std::uint32_t index) {
    if (static_cast<Index>(index) < reach_) best_.add_one(distance, static_cast<Index>(index));
    return true;
  }
  float worstDist() const { return best_.threshold(); }
  const detail::BoundedHeap& best() const { return best_; }

 private:
  Index reach_;
  detail::BoundedHeap best_;
};

template <class Reach>
void search_tree(const Tree& tree, const PointColumns& q, const Reach& reach, Index most,
                 std::int32_t* out) {
  const Index m = q.cols(), tasks = (m + tree_queries - 1) / tree_queries;
  const auto body = [&](Index task, int) {
    for (Index i = task * tree_queries; i < std::min(m, (task + 1) * tree_queries); ++i) {
      if (reach(i) == 0) continue;
      ReachedSet found(std::min(reach(i), most), reach(i));
      tree.findNeighbors(found, q.col(i).data(), nanoflann::SearchParams());
      found.best().write(out + i * most);
    }
  };
  parallel_for(tasks, std::ref(body));
}

}  // namespace

/// A tree for few dimensions, tiles for more.
struct NearestPoints::Impl {
  explicit Impl(PointColumns points) : z(std::move(points)), cloud{z} {
    if (z.rows() <= tree_dimensions)
      tree.emplace(static_cast<int>(z.rows()), cloud,
                   nanoflann::KDTreeSingleIndexAdaptorParams(16));
    else
      tiles.emplace(z);
  }
  template <class Reach>
  void search(const PointColumns& q, const Reach& reach, Index most, std::int32_t* out) const {
    if (tree)
      search_tree(*tree, q, reach, most, out);
    else
      search_tiles(*tiles, q, reach, most, out);
  }

  PointColumns z;
  Cloud cloud;
  std::optional<Tree> tree;
  std::optional<Tiles> tiles;
};

NearestPoints::NearestPoints(PointColumns z) : impl_(std::make_unique<Impl>(std::move(z))) {}
NearestPoints::~NearestPoints() = default;
NearestPoints::NearestPoints(NearestPoints&&) noexcept = default;

void NearestPoints::find(const PointColumns& q, Index count, std::int32_t* out) const {
  const Index n = impl_->z.cols();
  impl_->search(
      q, [n](Index) { return n; }, count, out);
}

Neighbours nearest_earlier(const PointColumns& z, Index count) {
  Neighbours result;
  result.points = z.cols();
  result.most = std::max<Index>(0, std::min(count, z.cols() - 1));
  result.index.resize(static_cast<std::size_t>(result.most * result.points));
  if (result.most == 0) return result;
  NearestPoints::Impl(z).search(
      z, [](Index i) { return i; }, result.most, result.index.data());
  return result;
}

bool falls_with_distance(const kernels::Kernel& kernel) {
  const Node* node = &kernel.root();
  while (node->kind == Node::Kind::scale) node = node->children.data();
  return node->kind == Node::Kind::leaf && node->leaf.info().measures_distance();
}

ScaledMetric::ScaledMetric(const kernels::Kernel& kernel, ConstMatrixView x) {
  std::vector<double> weights;
  shortest_lengthscales(kernel.root(), x.cols(), weights);
  const auto d = static_cast<Index>(weights.size());
  if (d == 0 || x.rows() == 0) return;
  middle_.resize(d);
  weight_ = Eigen::Map<const Vector>(weights.data(), d);
  double largest = std::numeric_limits<double>::min();
  for (Index c = 0; c < d; ++c) {
    const double low = x.col(c).minCoeff(), high = x.col(c).maxCoeff();
    middle_(c) = low + (high - low) / 2;
    largest = std::max(largest, (high - low) * weight_(c));
  }
  weight_ /= largest;
}

PointColumns ScaledMetric::operator()(ConstMatrixView x) const {
  PointColumns z(weight_.size(), x.rows());
  // New points may lie anywhere; beyond this one direction is as good as another in float32.
  constexpr double far = 1e6;
  for (Index c = 0; c < z.rows(); ++c)
    z.row(c) = ((x.col(c).array() - middle_(c)) * weight_(c))
                   .max(-far)
                   .min(far)
                   .cast<float>()
                   .matrix()
                   .transpose();
  return z;
}

PointColumns scaled_points(const kernels::Kernel& kernel, ConstMatrixView x) {
  return ScaledMetric(kernel, x)(x);
}

}  // namespace mercer::approximations
