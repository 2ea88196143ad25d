#include "mercer/approximations/nystrom.hpp"

#include <algorithm>
#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::approximations {

Index nystrom_factor(Matrix& y, const Matrix& core, double epsilon) {
  const Index m = core.rows();
  const auto eigen = linalg::symmetric_eigen(core);
  const double rounding = static_cast<double>(m) * epsilon * std::max(eigen.values(m - 1), 0.0);
  Index clipped = 0;
  while (clipped < m && !(eigen.values(clipped) > rounding)) ++clipped;
  const Index kept = m - clipped;
  linalg::multiply_in_place(y, eigen.vectors.rightCols(kept) *
                                   eigen.values.tail(kept).cwiseSqrt().cwiseInverse().asDiagonal());
  return clipped;
}

LowRank nystrom(const operators::KernelOperator& k, const LandmarkOptions& options) {
  auto chosen = choose_landmarks(k, options);
  LowRank result;
  const auto space = k.row_space();
  if (space.global_size() == 0) return result;
  const Vector diagonal = k.diagonal();
  if (!space.all(diagonal.allFinite()))
    throw InvalidArgument("Nystrom: the kernel is not finite at some point");
  const auto m = static_cast<Index>(chosen.points.size());
  result.pivots = std::move(chosen.points);
  result.exhausted = chosen.exhausted;
  result.kernel_values = chosen.kernel_values;
  result.columns_evaluated = m;
  result.factor = std::move(chosen.columns);
  if (result.factor.cols() != m) {
    result.factor.resize(k.size(), m);
    k.columns(result.pivots, result.factor);
    result.kernel_values += static_cast<double>(k.size()) * static_cast<double>(m);
  }
  const Matrix core = linalg::gather_rows(space, result.factor, result.pivots);
  result.clipped = nystrom_factor(result.factor, core, std::numeric_limits<double>::epsilon());
  result.trace = space.sum(diagonal.sum());
  result.trace_error =
      space.sum((diagonal - linalg::squared_rows(result.factor)).cwiseMax(0.0).sum());
  return result;
}

double nystrom_bytes(Index n, const LandmarkOptions& options) {
  const auto m = static_cast<double>(std::min(options.count, n));
  return std::max(landmark_bytes(n, options), 8 * (static_cast<double>(n) * (m + 4) + 4 * m * m));
}

double nystrom_kernel_values(Index n, const LandmarkOptions& options) {
  const double choice = landmark_kernel_values(n, options);
  if (options.choice == Landmarks::kmeans) return choice;
  return choice + static_cast<double>(n) * static_cast<double>(std::min(options.count, n));
}

double nystrom_flops(Index n, const LandmarkOptions& options) {
  const auto points = static_cast<double>(n), m = static_cast<double>(std::min(options.count, n));
  return landmark_flops(n, options) + 2 * points * m * (m + 1) + 9 * m * m * m;
}

}  // namespace mercer::approximations
