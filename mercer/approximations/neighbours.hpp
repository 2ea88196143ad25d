// For points in a given order, the m EARLIER points that each is most correlated with: what a
// Vecchia factor conditions on. Correlation is |R_ij| / sqrt(R_ii R_jj) of R = K + D, D the noise,
// or of what a low-rank part leaves, R = K - F F' + D.
//   Source: Kang & Katzfuss (2023), correlation-based ordering of neighbours; nearest neighbours by
//           a kd-tree (nanoflann) or by tiles of a matrix product.
//   Cost:   one distance leaf, no F: nearest neighbours, by kd-tree for d <= 6 (N m log N), else by
//           N^2 d float32 flops in matrix products; a periodic leaf has two coordinates per input.
//           With F: the 2 m nearest, of which half of m are taken because they are the nearest and
//           half because they are the most correlated (2 N m rank flops); either rule alone was
//           worse on some lengthscales. Other kernels: N^2/2 kernel values (and N^2 rank flops);
//           above `all_pairs` points only candidates are looked at, the 2 m nearest and the best of
//           the first 4096 points, which are random ones if the order is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/linalg/diagonal.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

/// Points as columns (features x N), so that those of a small set are gathered in whole lines.
using PointColumns = Eigen::MatrixXf;

/// The neighbours of points first .. first + points - 1. Point i has min(i, most) of them, all
/// before i, ascending.
struct Neighbours {
  Index most = 0;
  Index first = 0;
  Index points = 0;
  std::vector<std::int32_t> index;  // `most` to a point
  double kernel_values = 0;         // single entries of K evaluated
  bool all_pairs = true;            // false: not a distance, too many points, only candidates

  Index count(Index i) const { return std::min(i, most); }
  std::span<const std::int32_t> of(Index i) const {
    return {index.data() + (i - first) * most, static_cast<std::size_t>(count(i))};
  }
};

struct NeighbourOptions {
  Index count = 30;         // at most; N - 1 when larger
  Index candidates = 2;     // times count: the nearest points that are looked at
  double nearest = 0.5;     // part of count that is taken for being near; one distance leaf and F
  Index all_pairs = 30000;  // other kernels: points up to which all pairs are looked at
  Index all_pairs_of_residual = 8192;  // the same with F
};

template <class Visitor>
void visit_fields(NeighbourOptions& o, Visitor&& field) {
  field("count", o.count, NonNegative{});
  field("candidates", o.candidates, Positive{});
  field("nearest", o.nearest, NonNegative{});
  field("all_pairs", o.all_pairs, NonNegative{});
  field("all_pairs_of_residual", o.all_pairs_of_residual, NonNegative{});
}

/// The matrix R whose correlations count; x has one row per point, in order.
struct Residual {
  const kernels::Kernel& kernel;
  const Matrix& x;
  linalg::Diagonal noise = 0.0;
  const PointColumns* factor = nullptr;  // F', rank x N; null: R = K + D
};

Neighbours most_correlated(const Residual& r, const NeighbourOptions& options = {});

/// The same search prepared once and asked for a block of points at a time: memory for the
/// neighbours of the block only, and a caller can report progress in between.
class NeighbourSearch {
 public:
  /// What `r` refers to must outlive this.
  explicit NeighbourSearch(const Residual& r, const NeighbourOptions& options = {});
  ~NeighbourSearch();
  /// The neighbours of points first .. last - 1.
  Neighbours find(Index first, Index last) const;

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// The `count` earlier points nearest to each in Euclidean distance; z is d x N. Ties go to the
/// earlier point (in the kd-tree of d <= 6 to the one found first).
Neighbours nearest_earlier(const PointColumns& z, Index count);

/// True when correlation falls with a scaled distance, so that the most correlated are the nearest.
bool falls_with_distance(const kernels::Kernel& kernel);

/// Points as columns whose Euclidean distance is that of the kernel: each input over its shortest
/// lengthscale among leaves of a distance, the middle of x taken out, and for every periodic leaf
/// the two coordinates of each input on the circle of the period. Scaled so that x lies within 1;
/// no rows when the kernel has no such leaf.
class ScaledMetric {
 public:
  ScaledMetric(const kernels::Kernel& kernel, ConstMatrixView x);
  PointColumns operator()(ConstMatrixView points) const;

 private:
  enum class Kind { line, cosine, sine };
  struct Feature {
    Index input = 0;
    Kind kind = Kind::line;
    double weight = 1;
    double rate = 1;    // of a circle: 2 pi / period
    double middle = 0;  // taken from the input
  };
  std::vector<Feature> features_;
};
/// x in its own metric.
PointColumns scaled_points(const kernels::Kernel& kernel, ConstMatrixView x);

/// Points prepared once for finding those nearest to new ones.
class NearestPoints {
 public:
  /// `earlier` prepares for find_earlier as well: trees over the first 1,024, 2,048, .. points.
  enum class Among { all, earlier };
  explicit NearestPoints(PointColumns z, Among among = Among::all);
  ~NearestPoints();
  NearestPoints(NearestPoints&&) noexcept;
  /// out: the `count` points nearest to each column of q, ascending; count is at most their number.
  void find(const PointColumns& q, Index count, std::int32_t* out) const;
  /// out: for each of the points first .. last - 1 themselves the `count` nearest of those before
  /// it, ascending; point i has min(i, count), from out + (i - first) * count on.
  void find_earlier(Index first, Index last, Index count, std::int32_t* out) const;

 private:
  struct MERCER_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

/// Single entries of K that most_correlated evaluates, for the planner (any kernel: from above).
double neighbours_kernel_values(Index n, Index count, bool residual);
double neighbours_flops(Index n, Index d, Index count, Index rank);

}  // namespace mercer::approximations
MERCER_API_END
