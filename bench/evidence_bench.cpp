// One evaluation of the exact log likelihood and its gradient, and the parts of it, on data of the
// size that small tables have.
//   flops/s    of the cubic part alone: n^3/3 a factorisation, 2 n^3/3 the inverse after it
//   of_dgemm   that rate over the rate of OpenBLAS's dgemm on as many threads, measured just before
//   gradient_pass: the pass over the tiles of a gradient by solves with five columns, the second
//   argument being its arithmetic (64 or 32 bits), beside one product in float32 (float32_product)
//   CPU        processor seconds of all threads: on a busy machine the number to look at
//
//   evidence_bench [--benchmark_filter=...], and the other options of Google Benchmark
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <vector>

#include "mercer/core/openmp.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer {
namespace {

constexpr Index kInputs = 8;

Matrix points(Index n) {
  Rng rng(1, "bench");
  Matrix x(n, kInputs);
  for (Index j = 0; j < kInputs; ++j)
    for (Index i = 0; i < n; ++i) x(i, j) = rng.normal();
  return x;
}

inference::Problem problem() {
  inference::Problem p(kernels::Kernel::parse("1*matern52:ard", kInputs), 1e-2);
  p.kernel.set_log_parameters(Vector::LinSpaced(p.kernel.num_parameters(), -0.5, 1.0));
  return p;
}

Matrix kernel_matrix(const Matrix& x) {
  Matrix h(x.rows(), x.rows());
  operators::dense_matrix(problem().kernel, x, h);
  h.diagonal().array() += 1e-2;
  return h;
}

// Flops per second of dgemm, one square product on each thread.
double dgemm_rate() {
  constexpr int n = 768;
  constexpr int repeats = 3;
  const SerialOpenMp serial;
  const int threads = num_threads();
  std::vector<Matrix> a(static_cast<std::size_t>(threads), Matrix::Random(n, n)), c = a;
  double best = 0;
  for (int trial = 0; trial < 5; ++trial) {
    const Timer timer;
    parallel_for(threads, [&](Index t, int) {
      const auto i = static_cast<std::size_t>(t);
      for (int r = 0; r < repeats; ++r)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, a[i].data(), n,
                    a[i].data(), n, 0.0, c[i].data(), n);
    });
    best = std::max(best, 2.0 * n * n * n * repeats * threads / timer.seconds());
  }
  return best;
}

void set_rates(benchmark::State& state, double yardstick, double flops) {
  using benchmark::Counter;
  const double all = flops * static_cast<double>(state.iterations());
  state.counters["flops/s"] = Counter(all, Counter::kIsRate);
  state.counters["of_dgemm"] = Counter(all / yardstick, Counter::kIsRate);
}

double cube(benchmark::State& state) {
  const auto n = static_cast<double>(state.range(0));
  return n * n * n;
}

void dgemm(benchmark::State& state) {
  double rate = 0;
  for ([[maybe_unused]] auto _ : state) rate = std::max(rate, dgemm_rate());
  state.counters["flops/s"] = rate;
}

void kernel(benchmark::State& state) {
  const Matrix x = points(state.range(0));
  Matrix h(x.rows(), x.rows());
  const auto k = problem().kernel;
  for ([[maybe_unused]] auto _ : state) operators::lower_matrix(k, x, h);
}

void factorisation(benchmark::State& state) {
  const Matrix h = kernel_matrix(points(state.range(0)));
  const double yardstick = dgemm_rate();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(linalg::Cholesky(h).log_det());
  set_rates(state, yardstick, cube(state) / 3);
}

void inverse(benchmark::State& state) {
  const Matrix h = kernel_matrix(points(state.range(0)));
  const double yardstick = dgemm_rate();
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(linalg::Cholesky(h).inverse().data());
  set_rates(state, yardstick, cube(state));
}

void slopes(benchmark::State& state) {
  const Matrix x = points(state.range(0));
  const Matrix s = kernel_matrix(x);
  const auto k = problem().kernel;
  Vector gradient(k.num_parameters());
  for ([[maybe_unused]] auto _ : state) operators::weighted_gradient(k, x, s, gradient);
}

void evidence_and_gradient(benchmark::State& state) {
  const Matrix x = points(state.range(0));
  const auto p = problem();
  const inference::Observations data(x, x.col(0));
  const double yardstick = dgemm_rate();
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(inference::exact_evidence(p, data, true).value);
  set_rates(state, yardstick, cube(state));
}

void gradient_pass(benchmark::State& state) {
  constexpr Index kColumns = 5;
  const Matrix x = points(state.range(0));
  const auto p = problem();
  const operators::TiledOperator op(
      p.kernel, x,
      state.range(1) == 32 ? operators::Precision::float32 : operators::Precision::float64);
  const Matrix u = Matrix::Random(x.rows(), kColumns), v = Matrix::Random(x.rows(), kColumns);
  Matrix kv(x.rows(), kColumns);
  Vector gradient(p.kernel.num_parameters());
  for ([[maybe_unused]] auto _ : state) op.apply_with_quick_gradient(u, v, kv, gradient);
}

void float32_product(benchmark::State& state) {
  const Matrix x = points(state.range(0));
  const operators::TiledOperator op(problem().kernel, x, operators::Precision::float32);
  const Matrix v = Matrix::Random(x.rows(), 1);
  Matrix kv(x.rows(), 1);
  for ([[maybe_unused]] auto _ : state) op.apply(v, kv);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const int n : {250, 330, 691, 992, 2000}) b->Arg(n);
  b->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(dgemm)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(kernel)->Apply(sizes);
BENCHMARK(factorisation)->Apply(sizes);
BENCHMARK(inverse)->Apply(sizes);
BENCHMARK(slopes)->Apply(sizes);
BENCHMARK(evidence_and_gradient)->Apply(sizes);
BENCHMARK(float32_product)->Arg(20000)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gradient_pass)
    ->Args({20000, 64})
    ->Args({20000, 32})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace mercer

BENCHMARK_MAIN();
