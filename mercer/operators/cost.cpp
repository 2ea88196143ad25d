#include "mercer/operators/cost.hpp"

#include <algorithm>
#include <limits>

#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::operators {

double tiled_bytes(Index n, Index d, Index columns) {
  const auto points = static_cast<double>(n + detail::kTile);
  const auto inputs = static_cast<double>(d);
  const auto stored = static_cast<double>(detail::stored_columns(detail::plan_chunks(columns)));
  // Per point: inputs twice, position and vectors (in, out); boxes of tiles are small.
  const double shared = points * (16 * inputs + 8 + 16 * stored + 16 * inputs / detail::kTile);
  // Per thread: a block of rows and a panel of columns of every feature, strips, partial sums.
  const double per_thread = (2.0 * 1024 + 512) * inputs * 8 + 512 * 64.0 * 8 + 512 * stored * 8;
  return shared + num_threads() * per_thread;
}

double stored_bytes(Index n, Index d, Index columns, Precision precision) {
  return tiled_bytes(n, d, columns) + StoredOperator::bytes(n, precision);
}

double measure_seconds_per_pair(const kernels::Kernel& kernel, ConstMatrixView sample_points,
                                Precision precision, Index columns) {
  const Index available = sample_points.rows();
  if (available == 0 || columns == 0) return 0;
  // Every k-th point, so that the sample spreads like the data.
  const Index n = std::min<Index>(available, 2000);
  Matrix sample(n, sample_points.cols());
  for (Index i = 0; i < n; ++i) sample.row(i) = sample_points.row(i * available / n);
  const TiledOperator a(kernel, std::move(sample), precision);
  Matrix x(n, columns);
  Matrix y(n, columns);
  Rng(0, "cost").fill_normal(x);
  double best = std::numeric_limits<double>::infinity();
  const Timer total;
  // The first run warms the caches; the best of the others is the least disturbed.
  for (int run = 0; run < 3 || (run < 100 && total.seconds() < 0.03); ++run) {
    const Timer timer;
    a.apply(x, y);
    if (run > 0) best = std::min(best, timer.seconds());
    if (run > 0 && total.seconds() > 0.05) break;
  }
  return best / (static_cast<double>(n) * static_cast<double>(n));
}

}  // namespace mercer::operators
