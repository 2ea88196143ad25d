#include "mercer/approximations/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include "mercer/approximations/detail/smallest.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::approximations {
namespace {

constexpr Index queries = 128;        // of a tile
constexpr Index tile = 512;           // earlier points of a tile
constexpr Index ranked = 64;          // points to a task when candidates are ranked
constexpr Index first_points = 4096;  // candidates of a kernel that is not one distance

/// sqrt(R_ii).
Vector deviations(const Residual& r) {
  const Vector noise = r.noise.vector(r.x.rows());
  Vector d = r.kernel.diagonal(r.x) + noise;
  // What is left cannot be below the noise but for rounding.
  const Vector least = noise.cwiseMax(std::numeric_limits<float>::epsilon() * d.maxCoeff());
  if (r.factor != nullptr)
    for (Index i = 0; i < d.size(); ++i)
      d(i) -= static_cast<double>(r.factor->col(i).squaredNorm());
  return d.cwiseMax(least).cwiseSqrt();
}

/// Tiles of -|R_ij| / sqrt(R_ii) over earlier points i, for queries j: the best are the smallest.
class CorrelationTiles {
 public:
  explicit CorrelationTiles(const Residual& r) : r_(r), deviation_(deviations(r)) {}

  struct Workspace {
    Matrix k;
    std::vector<float> product, scores;
  };

  /// scores: count x query_count.
  void evaluate(Index first, Index count, Index query, Index query_count, Workspace& w) const {
    w.k.resize(count, query_count);
    operators::cross_matrix(r_.kernel, r_.x.middleRows(first, count),
                            r_.x.middleRows(query, query_count), w.k);
    const auto size = static_cast<std::size_t>(count * query_count);
    w.product.assign(size, 0.0F);
    w.scores.resize(size);
    if (r_.factor != nullptr && r_.factor->rows() > 0)
      linalg::small_transposed_product<float>(r_.factor->rows(), count, query_count,
                                              r_.factor->col(first).data(),
                                              r_.factor->col(query).data(), w.product.data());
    for (Index j = 0; j < query_count; ++j)
      for (Index i = 0; i < count; ++i) {
        const auto k = static_cast<std::size_t>(i + j * count);
        const double left = w.k(i, j) - static_cast<double>(w.product[k]);
        w.scores[k] = static_cast<float>(-std::abs(left) / deviation_(first + i));
      }
  }

 private:
  Residual r_;
  Vector deviation_;
};

Neighbours sized(Index first, Index last, Index most) {
  Neighbours result;
  result.first = first;
  result.points = last - first;
  result.most = most;
  result.index.resize(static_cast<std::size_t>(most * result.points));
  return result;
}

/// The best among all earlier points, or among the first `reach` of them.
void search_all(const CorrelationTiles& tiles, Index reach, Neighbours& result) {
  const Index n = result.points, blocks = (n + queries - 1) / queries;
  const auto body = [&](Index task, int) {
    const Index begin = result.first + (blocks - 1 - task) * queries;
    const Index end = std::min(result.first + n, begin + queries);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(end - begin),
                                       detail::Smallest(result.most));
    CorrelationTiles::Workspace w;
    for (Index first = 0; first < std::min(end, reach); first += tile) {
      const Index count = std::min({tile, end - first, reach - first});
      tiles.evaluate(first, count, begin, end - begin, w);
      for (Index i = begin; i < end; ++i)
        best[static_cast<std::size_t>(i - begin)].add(w.scores.data() + (i - begin) * count, first,
                                                      std::min(count, i - first));
    }
    for (Index i = begin; i < end; ++i)
      best[static_cast<std::size_t>(i - begin)].write(result.index.data() +
                                                      (i - result.first) * result.most);
  };
  parallel_for(blocks, std::ref(body));
  for (Index b = 0; b < blocks; ++b) {
    const Index begin = result.first + b * queries;
    const Index end = std::min(result.first + n, begin + queries);
    result.kernel_values += static_cast<double>(std::min(end, reach)) * double(end - begin);
  }
}

/// The union of two sets for each point, ascending.
struct Candidates {
  const Neighbours& a;
  const Neighbours* b = nullptr;
  void of(Index i, std::vector<std::int32_t>& out) const {
    const auto near = a.of(i);
    out.assign(near.begin(), near.end());
    if (b == nullptr) return;
    const auto more = b->of(i);
    out.clear();
    std::set_union(near.begin(), near.end(), more.begin(), more.end(), std::back_inserter(out));
  }
};

/// Scores -infinity for the `count` candidates nearest to point i.
void take_nearest(const PointColumns& z, Index i, Index count,
                  const std::vector<std::int32_t>& which, std::vector<float>& scores) {
  if (z.rows() == 0) return;
  detail::BoundedHeap nearest(count);
  for (std::size_t j = 0; j < which.size(); ++j)
    nearest.add_one((z.col(which[j]) - z.col(i)).squaredNorm(), static_cast<Index>(j));
  std::vector<std::int32_t> places(nearest.size());
  nearest.write(places.data());
  for (const std::int32_t j : places)
    scores[static_cast<std::size_t>(j)] = -std::numeric_limits<float>::infinity();
}

/// One point against its candidates: the nearest of them, then the most correlated.
class Ranking {
 public:
  Ranking(const Residual& r, const Vector& deviation, const PointColumns& z, Index nearest)
      : r_(r), deviation_(deviation), z_(z), nearest_(nearest) {}

  void rank(const Candidates& candidates, Neighbours& result) const {
    const Index n = result.points, tasks = (n + ranked - 1) / ranked;
    std::vector<double> values(static_cast<std::size_t>(tasks), 0.0);
    const auto body = [&](Index task, int) {
      Workspace w;
      for (Index k = task * ranked; k < std::min(n, (task + 1) * ranked); ++k) {
        candidates.of(result.first + k, w.which);
        values[static_cast<std::size_t>(task)] +=
            choose(result.first + k, result.most, w, result.index.data() + k * result.most);
      }
    };
    parallel_for(tasks, std::ref(body));
    for (const double v : values) result.kernel_values += v;
  }

 private:
  struct Workspace {
    std::vector<std::int32_t> which;
    std::vector<float> scores;
    Matrix points, k;
  };

  /// Writes the best of w.which for point i; returns the kernel values that it took.
  double choose(Index i, Index most, Workspace& w, std::int32_t* out) const {
    const auto count = static_cast<Index>(w.which.size());
    if (count <= most) {
      std::copy(w.which.begin(), w.which.end(), out);
      return 0;
    }
    w.points.resize(count, r_.x.cols());
    w.k.resize(count, 1);
    for (Index c = 0; c < r_.x.cols(); ++c)
      for (Index j = 0; j < count; ++j)
        w.points(j, c) = r_.x(w.which[static_cast<std::size_t>(j)], c);
    operators::cross_matrix(r_.kernel, w.points, r_.x.row(i), w.k);
    w.scores.resize(w.which.size());
    for (std::size_t j = 0; j < w.which.size(); ++j) {
      double left = w.k(static_cast<Index>(j), 0);
      if (r_.factor != nullptr)
        left -= static_cast<double>(r_.factor->col(w.which[j]).dot(r_.factor->col(i)));
      w.scores[j] = static_cast<float>(-std::abs(left) / deviation_(w.which[j]));
    }
    take_nearest(z_, i, nearest_, w.which, w.scores);
    detail::Smallest best(most);
    for (std::size_t j = 0; j < w.which.size(); ++j) best.add_one(w.scores[j], w.which[j]);
    best.write(out);
    return static_cast<double>(count);
  }

  const Residual& r_;
  const Vector& deviation_;
  const PointColumns& z_;
  Index nearest_;
};

}  // namespace

struct NeighbourSearch::Impl {
  Impl(const Residual& residual, const NeighbourOptions& wanted) : r(residual), options(wanted) {
    validate(options);
    const Index n = r.x.rows();
    if (n > std::numeric_limits<std::int32_t>::max())
      throw InvalidArgument("neighbours: more than 2^31 - 1 points");
    if (r.factor != nullptr && r.factor->cols() != n)
      throw DimensionMismatch("neighbours: columns of the factor", r.factor->cols(), "points", n);
    most = std::max<Index>(0, std::min(options.count, n - 1));
    near = falls_with_distance(r.kernel);
    if (most == 0) return;
    const Index limit = r.factor == nullptr ? options.all_pairs : options.all_pairs_of_residual;
    all_pairs = !near && n <= limit;
    if (all_pairs || !near) tiles.emplace(all_pairs ? r : Residual{r.kernel, r.x, r.noise});
    if (all_pairs) return;
    z = scaled_points(r.kernel, r.x);
    if (near && r.factor == nullptr) {
      nearest.emplace(std::move(z), NearestPoints::Among::earlier);
      return;
    }
    if (z.rows() > 0) nearest.emplace(z, NearestPoints::Among::earlier);
    deviation = deviations(r);
  }

  Neighbours find(Index first, Index last) const {
    auto result = sized(first, last, most);
    if (most == 0) return result;
    if (near && r.factor == nullptr) {
      nearest->find_earlier(first, last, most, result.index.data());
      return result;
    }
    if (all_pairs) {
      search_all(*tiles, r.x.rows(), result);
      return result;
    }
    const Index candidates = std::min(options.candidates * most, r.x.rows() - 1);
    auto close = sized(first, last, nearest ? candidates : 0), best = sized(first, last, most);
    if (nearest) nearest->find_earlier(first, last, candidates, close.index.data());
    if (!near) {
      result.all_pairs = false;
      search_all(*tiles, std::max(first_points, most), best);
      result.kernel_values += best.kernel_values;
    }
    const auto taken = near ? static_cast<Index>(options.nearest * static_cast<double>(most)) : 0;
    Ranking(r, deviation, z, taken).rank({close, near ? nullptr : &best}, result);
    return result;
  }

  Residual r;
  NeighbourOptions options;
  Index most = 0;
  bool near = false;       // one leaf of a distance
  bool all_pairs = false;  // another kernel, and few points
  PointColumns z;
  std::optional<NearestPoints> nearest;
  std::optional<CorrelationTiles> tiles;
  Vector deviation;
};

NeighbourSearch::NeighbourSearch(const Residual& r, const NeighbourOptions& options)
    : impl_(std::make_unique<Impl>(r, options)) {}
NeighbourSearch::~NeighbourSearch() = default;

Neighbours NeighbourSearch::find(Index first, Index last) const { return impl_->find(first, last); }

Neighbours most_correlated(const Residual& r, const NeighbourOptions& options) {
  return NeighbourSearch(r, options).find(0, r.x.rows());
}

double neighbours_kernel_values(Index n, Index count, bool residual) {
  const auto points = static_cast<double>(n);
  const NeighbourOptions limits;
  const auto candidates = static_cast<double>((limits.candidates + 1) * std::min(count, n));
  if (n <= (residual ? limits.all_pairs_of_residual : limits.all_pairs))
    return points * (points / 2 + queries + candidates);
  return points * (static_cast<double>(first_points) + candidates);
}

double neighbours_flops(Index n, Index d, Index count, Index rank) {
  const auto points = static_cast<double>(n), k = static_cast<double>(rank);
  const double metric = points * points * static_cast<double>(d + 1);
  const NeighbourOptions limits;
  if (rank > 0 && n <= limits.all_pairs_of_residual) return metric + points * points * k;
  return metric + 2 * points * static_cast<double>(limits.candidates * std::min(count, n)) * k;
}

}  // namespace mercer::approximations
