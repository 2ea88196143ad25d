#include "mercer/operators/cost.hpp"

#include <algorithm>
#include <limits>

#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::operators {

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
