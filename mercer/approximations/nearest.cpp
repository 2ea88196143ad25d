// The nearest points, earlier ones or any: nearest_earlier, NearestPoints and the metric of a
// kernel.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nanoflann.hpp>
#include <numbers>
#include <optional>

#include "mercer/approximations/detail/smallest.hpp"
#include "mercer/approximations/neighbours.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"

namespace mercer::approximations {
namespace {

using kernels::Node;

constexpr Index tree_dimensions = 6;  // above, a kd-tree looks at most of the points anyway
constexpr Index tree_queries = 256;   // to a task
constexpr Index first_level = 1024;   // points of the smallest tree for earlier ones
constexpr Index near_queries = 128;   // of a tile
constexpr Index near_tile = 512;      // earlier points of a tile

void shortest_lengthscales(const Node& node, Index d, std::vector<double>& weights) {
  for (const Node& child : node.children) shortest_lengthscales(child, d, weights);
  if (node.kind != Node::Kind::leaf || !node.leaf.info().measures_distance()) return;
  weights.resize(static_cast<std::size_t>(d), 0.0);
  for (Index k = 0; k < node.leaf.num_inputs(); ++k) {
    double& weight = weights[static_cast<std::size_t>(node.leaf.column(k))];
    weight = std::max(weight, 1 / node.leaf.lengthscale(k));
  }
}

void leaves_on_circles(const Node& node, std::vector<const kernels::Leaf*>& leaves) {
  for (const Node& child : node.children) leaves_on_circles(child, leaves);
  if (node.kind == Node::Kind::leaf && node.leaf.info().inputs == kernels::InputMap::circle)
    leaves.push_back(&node.leaf);
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
  const Index m = q.cols(), blocks = (m + near_queries - 1) / near_queries;
  const auto body = [&](Index task, int) {
    // The long tasks first: the last points have the most before them.
    const Index begin = (blocks - 1 - task) * near_queries, end = std::min(m, begin + near_queries);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(end - begin),
                                       detail::Smallest(most));
    std::vector<float> values(static_cast<std::size_t>(near_tile * near_queries));
    for (Index first = 0; first < reach(end); first += near_tile) {
      stop_if_requested("looking for neighbours");
      const Index count = std::min(near_tile, reach(end) - first);
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

/// What nanoflann asks of a set of points: the first `count` columns of z.
struct Cloud {
  const PointColumns& z;
  Index count;
  std::size_t kdtree_get_point_count() const { return static_cast<std::size_t>(count); }
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
  /// A tree over the first points.
  struct Level {
    Level(const PointColumns& z, Index count)
        : cloud{z, count},
          tree(static_cast<int>(z.rows()), cloud, nanoflann::KDTreeSingleIndexAdaptorParams(16)) {}
    Cloud cloud;
    Tree tree;
  };

  Impl(PointColumns points, Among among) : z(std::move(points)) {
    if (z.rows() > tree_dimensions) {
      tiles.emplace(z);
      return;
    }
    if (among == Among::earlier)
      for (Index count = first_level; count < z.cols(); count *= 2) {
        stop_if_requested("looking for neighbours");
        levels.push_back(std::make_unique<Level>(z, count));
      }
    stop_if_requested("looking for neighbours");
    levels.push_back(std::make_unique<Level>(z, z.cols()));
  }

  PointColumns z;
  std::vector<std::unique_ptr<Level>> levels;  // smallest first; the last has all points
  std::optional<Tiles> tiles;
};

NearestPoints::NearestPoints(PointColumns z, Among among)
    : impl_(std::make_unique<Impl>(std::move(z), among)) {}
NearestPoints::~NearestPoints() = default;
NearestPoints::NearestPoints(NearestPoints&&) noexcept = default;

void NearestPoints::find(const PointColumns& q, Index count, std::int32_t* out) const {
  const auto all = [n = impl_->z.cols()](Index) { return n; };
  if (impl_->tiles)
    search_tiles(*impl_->tiles, q, all, count, out);
  else
    search_tree(impl_->levels.back()->tree, q, all, count, out);
}

void NearestPoints::find_earlier(Index first, Index last, Index count, std::int32_t* out) const {
  if (impl_->tiles)
    return search_tiles(
        *impl_->tiles, impl_->z.middleCols(first, last - first),
        [first](Index i) { return first + i; }, count, out);
  // In a tree over all points the search for an early point would pass by most of them, because few
  // come before it. So each is looked for in the smallest tree that has all points before it: at
  // least half of that tree may be taken.
  for (const auto& level : impl_->levels) {
    const Index end = std::min(last, level->cloud.count);
    if (end <= first) continue;
    search_tree(
        level->tree, impl_->z.middleCols(first, end - first),
        [first](Index i) { return first + i; }, count, out);
    out += (end - first) * count;
    first = end;
  }
}

Neighbours nearest_earlier(const PointColumns& z, Index count) {
  Neighbours result;
  result.points = z.cols();
  result.most = std::max<Index>(0, std::min(count, z.cols() - 1));
  result.index.resize(static_cast<std::size_t>(result.most * result.points));
  if (result.most > 0)
    NearestPoints(z, NearestPoints::Among::earlier)
        .find_earlier(0, z.cols(), result.most, result.index.data());
  return result;
}

bool falls_with_distance(const kernels::Kernel& kernel) {
  const Node* node = &kernel.root();
  while (node->kind == Node::Kind::scale) node = node->children.data();
  return node->kind == Node::Kind::leaf && node->leaf.info().family == kernels::Family::distance;
}

ScaledMetric::ScaledMetric(const kernels::Kernel& kernel, ConstMatrixView x) {
  if (x.rows() == 0) return;
  std::vector<double> weights;
  shortest_lengthscales(kernel.root(), x.cols(), weights);
  double largest = std::numeric_limits<double>::min();  // of the widths of x
  for (Index c = 0; c < static_cast<Index>(weights.size()); ++c) {
    const double weight = weights[static_cast<std::size_t>(c)];
    const double low = x.col(c).minCoeff(), high = x.col(c).maxCoeff();
    features_.push_back({.input = c, .weight = weight, .middle = low + (high - low) / 2});
    largest = std::max(largest, (high - low) * weight);
  }
  // k = exp(-2 sum_c sin^2(pi (x_c - x'_c) / period) / l_c^2) = exp(-|z - z'|^2 / 2), where z has
  // the coordinates cos and sin of 2 pi x_c / period, over l_c.
  std::vector<const kernels::Leaf*> circles;
  leaves_on_circles(kernel.root(), circles);
  for (const auto* leaf : circles)
    for (Index k = 0; k < leaf->num_inputs(); ++k) {
      Feature feature{.input = leaf->column(k),
                      .kind = Kind::cosine,
                      .weight = 1 / leaf->lengthscale(k),
                      .rate = 2 * std::numbers::pi / leaf->shape};
      features_.push_back(feature);
      feature.kind = Kind::sine;
      features_.push_back(feature);
      largest = std::max(largest, 2 * feature.weight);
    }
  for (auto& feature : features_) feature.weight /= largest;
}

PointColumns ScaledMetric::operator()(ConstMatrixView x) const {
  PointColumns z(static_cast<Index>(features_.size()), x.rows());
  // New points may lie anywhere; beyond this one direction is as good as another in float32.
  constexpr double far = 1e6;
  for (Index k = 0; k < z.rows(); ++k) {
    const auto& f = features_[static_cast<std::size_t>(k)];
    for (Index i = 0; i < x.rows(); ++i) {
      const double v = x(i, f.input);
      const double at = f.kind == Kind::line     ? v - f.middle
                        : f.kind == Kind::cosine ? std::cos(f.rate * v)
                                                 : std::sin(f.rate * v);
      z(k, i) = static_cast<float>(std::clamp(at * f.weight, -far, far));
    }
  }
  return z;
}

PointColumns scaled_points(const kernels::Kernel& kernel, ConstMatrixView x) {
  return ScaledMetric(kernel, x)(x);
}

}  // namespace mercer::approximations
