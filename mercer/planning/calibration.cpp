#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::planning {
namespace {

double measure_flops() {
  constexpr Index n = 768;
  double best = 1e300;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Matrix a = Matrix::Constant(n, n, 0.5);
    a.diagonal().array() += 1.0;
    const Timer timer;
    const linalg::Cholesky factor(std::move(a));
    best = std::min(best, timer.seconds());
  }
  // Large factorisations run nearer the peak than one of three tiles by three does.
  return 1.5 * linalg::cholesky_flops(n) / best;
}

double measure_bandwidth() {
  constexpr std::size_t count = std::size_t{1} << 20;  // 8 MiB
  const std::vector<double> data(count, 1.0);
  const Index tasks = 4 * num_threads();
  std::vector<double> sums(static_cast<std::size_t>(tasks));
  const Timer timer;
  parallel_for(tasks, [&](Index task, int) {
    const std::size_t piece = count / static_cast<std::size_t>(tasks);
    const double* first = data.data() + static_cast<std::size_t>(task) * piece;
    double lanes[8] = {};
    for (std::size_t i = 0; i + 8 <= piece; i += 8)
      for (std::size_t l = 0; l < 8; ++l) lanes[l] += first[i + l];
    for (const double lane : lanes) sums[static_cast<std::size_t>(task)] += lane;
  });
  const double seconds = timer.seconds();
  return sums[0] > 0 ? static_cast<double>(count) * 8 / seconds : 1.0;
}

}  // namespace

inference::Speeds calibrate(const kernels::Kernel& kernel, ConstMatrixView x) {
  using operators::measure_seconds_per_pair;
  using operators::Precision;
  // A machine does not change between two plans of one process: measure each kernel once.
  static std::mutex mutex;
  static std::map<std::string, inference::Speeds> known;
  const Matrix sample = x.topRows(std::min<Index>(x.rows(), 2000));
  const std::string key =
      fmt::format("{}|{}|{}|{}", kernel.text(), sample.rows(), sample.cols(), num_threads());
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(key); found != known.end()) return found->second;

  inference::Speeds c;
  const auto per_column = [&](Precision precision, double one) {
    return std::max(0.0, (measure_seconds_per_pair(kernel, sample, precision, 16) - one) / 15);
  };
  c.pair_seconds_double = measure_seconds_per_pair(kernel, sample, Precision::float64, 1);
  c.pair_seconds_single = measure_seconds_per_pair(kernel, sample, Precision::float32, 1);
  c.column_seconds_double = per_column(Precision::float64, c.pair_seconds_double);
  c.column_seconds_single = per_column(Precision::float32, c.pair_seconds_single);
  static const double flops = measure_flops();
  static const double bandwidth = measure_bandwidth();
  c.flops = flops;
  c.bandwidth = bandwidth;
  known.emplace(key, c);
  return c;
}

}  // namespace mercer::planning
