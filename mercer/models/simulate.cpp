#include "mercer/models/simulate.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::models {

Draw draw_from_gp(const inference::Problem& problem, ConstMatrixView x, std::uint64_t seed,
                  std::uint64_t memory_bytes) {
  const Index n = x.rows();
  const double need = linalg::cholesky_bytes(n);
  if (need > static_cast<double>(memory_bytes))
    throw DoesNotFit(
        fmt::format("an exact draw of {} points needs {}, but {} may be used; up to {} points fit",
                    n, format_bytes(need), format_bytes(static_cast<double>(memory_bytes)),
                    static_cast<Index>(std::sqrt(static_cast<double>(memory_bytes) / 8))));

  Matrix k(n, n);
  operators::dense_matrix(problem.kernel, x, k);
  // K alone is often singular in floating point. A nugget of 1e-10 of its diagonal, far below any
  // noise that data can show, makes the factorisation possible.
  k.diagonal().array() += 1e-10 * k.diagonal().mean();
  const linalg::Cholesky factor(std::move(k));

  Vector z(n);
  Rng(seed, "gp-draw").fill_normal(z);
  Draw draw;
  draw.latent.resize(n);
  // f = L z, row panels in parallel, each sum in a fixed order.
  constexpr Index panel = 64;
  const auto& l = factor.factor();
  parallel_for((n + panel - 1) / panel, [&](Index task, int) {
    const Index first = task * panel;
    const Index rows = std::min(panel, n - first);
    Vector sum = Vector::Zero(rows);
    for (Index j = 0; j < first + rows; ++j) {
      const Index from = std::max(first, j);
      sum.tail(first + rows - from) += z(j) * l.col(j).segment(from, first + rows - from);
    }
    draw.latent.segment(first, rows) = sum;
  });
  Vector noise(n);
  Rng(seed, "gp-noise").fill_normal(noise);
  draw.target = draw.latent + std::sqrt(problem.noise()) * noise;
  return draw;
}

}  // namespace mercer::models
