#include "mercer/approximations/local_variance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "mercer/approximations/detail/smallest.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/planned_threads.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/small.hpp"
#include "mercer/operators/small_sets.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::approximations {
namespace {

constexpr Index queries_to_a_task = 16;
constexpr Index local_queries = 32;  // searched together for a kernel that is not one distance
constexpr Index local_tile = 2048;   // training points of a tile then

/// The small systems, one after the other: a thread's own memory.
class SmallSystem {
 public:
  SmallSystem(const kernels::Kernel& kernel, const Matrix& x, const Vector& noise)
      : kernel_(kernel), sets_(kernel), x_(x), noise_(noise) {}

  double explained(std::span<const std::int32_t> which, ConstMatrixView point) {
    const auto m = static_cast<Index>(which.size());
    points_.resize(m, x_.cols());
    for (Index c = 0; c < x_.cols(); ++c)
      for (Index j = 0; j < m; ++j) points_(j, c) = x_(which[static_cast<std::size_t>(j)], c);
    k_.resize(m, m);
    sets_.load(points_);
    sets_.matrix(k_);
    for (Index j = 0; j < m; ++j) k_(j, j) += noise_(which[static_cast<std::size_t>(j)]);
    // Where it is raised there is more noise than there was: the variance can only come out larger.
    linalg::small_cholesky_raised(k_, l_, "local variance");
    v_.resize(m, 1);
    operators::cross_matrix(kernel_, points_, point, v_);
    linalg::small_solve_lower(m, l_.data(), linalg::Transpose::no, v_.data());
    return v_.squaredNorm();
  }

 private:
  const kernels::Kernel& kernel_;
  operators::SmallSets sets_;
  const Matrix& x_;
  const Vector& noise_;
  Matrix points_, k_, l_, v_;
};

}  // namespace

LocalVariance::LocalVariance(kernels::Kernel kernel, const Matrix& x, Vector noise,
                             Index neighbours)
    : kernel_(std::move(kernel)),
      x_(x),
      noise_(std::move(noise)),
      neighbours_(std::min(neighbours, x.rows())),
      metric_(kernel_, x) {
  if (neighbours < 1)
    throw InvalidArgument(
        fmt::format("local variance: {} neighbours, but there must be one", neighbours));
  if (noise_.size() != x.rows())
    throw DimensionMismatch("local variance: noise variances", noise_.size(), "points", x.rows());
  if (falls_with_distance(kernel_))
    nearest_.emplace(metric_(x));
  else
    deviation_ = (kernel_.diagonal(x) + noise_).cwiseSqrt();
}

std::vector<std::int32_t> LocalVariance::find(ConstMatrixView at) const {
  std::vector<std::int32_t> found(static_cast<std::size_t>(at.rows() * neighbours_));
  if (nearest_)
    nearest_->find(metric_(at), neighbours_, found.data());
  else
    find_most_correlated(at, found.data());
  return found;
}

// By |k_j| / sqrt(k_jj + D_jj), which is the correlation of f with the observation y_j but for a
// factor that all j share.
void LocalVariance::find_most_correlated(ConstMatrixView at, std::int32_t* out) const {
  const Index m = at.rows(), n = x_.rows();
  const auto body = [&](Index task, int) {
    const Index begin = task * local_queries, count = std::min(local_queries, m - begin);
    std::vector<detail::Smallest> best(static_cast<std::size_t>(count),
                                       detail::Smallest(neighbours_));
    Matrix k;
    std::vector<float> scores(static_cast<std::size_t>(local_tile));
    for (Index first = 0; first < n; first += local_tile) {
      const Index points = std::min(local_tile, n - first);
      k.resize(points, count);
      operators::cross_matrix(kernel_, x_.middleRows(first, points), at.middleRows(begin, count),
                              k);
      for (Index j = 0; j < count; ++j) {
        for (Index i = 0; i < points; ++i)
          scores[static_cast<std::size_t>(i)] =
              static_cast<float>(-std::abs(k(i, j)) / deviation_(first + i));
        best[static_cast<std::size_t>(j)].add(scores.data(), first, points);
      }
    }
    for (Index j = 0; j < count; ++j)
      best[static_cast<std::size_t>(j)].write(out + (begin + j) * neighbours_);
  };
  parallel_for((m + local_queries - 1) / local_queries, std::ref(body));
}

Vector LocalVariance::explained(ConstMatrixView at) const {
  const auto found = find(at);
  Vector out(at.rows());
  const auto body = [&](Index task, int) {
    SmallSystem system(kernel_, x_, noise_);
    for (Index i = task * queries_to_a_task;
         i < std::min(at.rows(), (task + 1) * queries_to_a_task); ++i)
      out(i) = system.explained(
          {found.data() + i * neighbours_, static_cast<std::size_t>(neighbours_)}, at.row(i));
  };
  parallel_for((at.rows() + queries_to_a_task - 1) / queries_to_a_task, std::ref(body));
  return out;
}

double LocalVariance::bytes(Index n, Index d, Index neighbours) {
  const auto points = static_cast<double>(n), m = static_cast<double>(std::min(neighbours, n));
  // Points in float32 twice, their noise; a small matrix and its factor for each thread.
  return points * (8.0 * static_cast<double>(d) + 16) + 16.0 * m * m * kPlannedThreads;
}

double LocalVariance::flops(Index n, Index d, Index neighbours) {
  const auto m = static_cast<double>(std::min(neighbours, n));
  return m * m * m / 3 + 2.0 * static_cast<double>(n) * static_cast<double>(d + 1);
}

double LocalVariance::kernel_values(const kernels::Kernel& kernel, Index n, Index neighbours) {
  const auto m = static_cast<double>(std::min(neighbours, n));
  return m * m / 2 + (falls_with_distance(kernel) ? 0.0 : static_cast<double>(n));
}

}  // namespace mercer::approximations
