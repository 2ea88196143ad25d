#include "mercer/approximations/neighbours.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

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
  const Residual& r_;
  Vector deviation_;
};

/// The best among all earlier points, or among the first `last` of them.
void search_all(const Residual& r, Index last, Neighbours& result) {
  const CorrelationTiles tiles(r);
  const Index n = r.x.rows(), blocks = (n + queries - 1) / queries;
  const auto body = [&](Index task, int) {
    const Index begin = (blocks - 1 - task) * queries, end = std::min(n, begin + queries);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(end - begin),
                                       detail::Smallest(result.most));
    CorrelationTiles::Workspace w;
    for (Index first = 0; first < std::min(end, last); first += tile) {
      const Index count = std::min({tile, end - first, last - first});
      tiles.evaluate(first, count, begin, end - begin, w);
      for (Index i = begin; i < end; ++i)
        best[static_cast<std::size_t>(i - begin)].add(w.scores.data() + (i - begin) * count, first,
                                                      std::min(count, i - first));
    }
    for (Index i = begin; i < end; ++i)
      best[static_cast<std::size_t>(i - begin)].write(result.index.data() + i * result.most);
  };
  parallel_for(blocks, std::ref(body));
  for (Index b = 0; b < blocks; ++b) {
    const Index begin = b * queries, end = std::min(n, begin + queries);
    result.kernel_values += static_cast<double>(std::min(end, last)) * double(end - begin);
  }
}

Neighbours sized(Index points, Index count) {
  Neighbours result;
  result.points = points;
  result.most = std::max<Index>(0, std::min(count, points - 1));
  result.index.resize(static_cast<std::size_t>(result.most * points));
  return result;
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
void rank_candidates(const Residual& r, const Candidates& candidates, const PointColumns& z,
                     Index nearest, Neighbours& result) {
  const Vector deviation = deviations(r);
  const Index n = r.x.rows(), tasks = (n + ranked - 1) / ranked;
  std::vector<double> values(static_cast<std::size_t>(tasks), 0.0);
  const auto body = [&](Index task, int) {
    std::vector<std::int32_t> which;
    std::vector<float> scores;
    Matrix points, k;
    for (Index i = task * ranked; i < std::min(n, (task + 1) * ranked); ++i) {
      candidates.of(i, which);
      const auto count = static_cast<Index>(which.size());
      if (count <= result.most) {
        std::copy(which.begin(), which.end(), result.index.data() + i * result.most);
        continue;
      }
      points.resize(count, r.x.cols());
      k.resize(count, 1);
      for (Index c = 0; c < r.x.cols(); ++c)
        for (Index j = 0; j < count; ++j) points(j, c) = r.x(which[static_cast<std::size_t>(j)], c);
      operators::cross_matrix(r.kernel, points, r.x.row(i), k);
      values[static_cast<std::size_t>(task)] += static_cast<double>(count);
      scores.resize(which.size());
      for (std::size_t j = 0; j < which.size(); ++j) {
        double left = k(static_cast<Index>(j), 0);
        if (r.factor != nullptr)
          left -= static_cast<double>(r.factor->col(which[j]).dot(r.factor->col(i)));
        scores[j] = static_cast<float>(-std::abs(left) / deviation(which[j]));
      }
      take_nearest(z, i, nearest, which, scores);
      detail::Smallest best(result.most);
      for (std::size_t j = 0; j < which.size(); ++j) best.add_one(scores[j], which[j]);
      best.write(result.index.data() + i * result.most);
    }
  };
  parallel_for(tasks, std::ref(body));
  for (const double v : values) result.kernel_values += v;
}

}  // namespace

Neighbours most_correlated(const Residual& r, const NeighbourOptions& options) {
  validate(options);
  const Index n = r.x.rows();
  if (n > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgument("neighbours: more than 2^31 - 1 points");
  if (r.factor != nullptr && r.factor->cols() != n)
    throw DimensionMismatch("neighbours: columns of the factor", r.factor->cols(), "points", n);
  const bool near = falls_with_distance(r.kernel);
  if (near && r.factor == nullptr)
    return nearest_earlier(scaled_points(r.kernel, r.x), options.count);

  auto result = sized(n, options.count);
  if (result.most == 0) return result;
  const Index limit = r.factor == nullptr ? options.all_pairs : options.all_pairs_of_residual;
  if (!near && n <= limit) {
    search_all(r, n, result);
    return result;
  }
  const PointColumns z = scaled_points(r.kernel, r.x);
  Neighbours close = sized(n, 0), best = sized(n, result.most);
  if (z.rows() > 0) close = nearest_earlier(z, options.candidates * result.most);
  if (!near) {
    result.all_pairs = false;
    search_all({r.kernel, r.x, r.noise}, std::max(first_points, best.most), best);
    result.kernel_values += best.kernel_values;
  }
  const auto nearest =
      near ? static_cast<Index>(options.nearest * static_cast<double>(result.most)) : 0;
  rank_candidates(r, {close, near ? nullptr : &best}, z, nearest, result);
  return result;
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
