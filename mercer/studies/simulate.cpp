#include "mercer/studies/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/approximations/vecchia_draw.hpp"
#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::studies {
namespace {

// K alone is often singular in floating point. A nugget of this share of its mean diagonal, far
// below any noise that data can show, makes a factorisation possible.
constexpr double kNugget = 1e-10;

constexpr DrawMethod kMethods[] = {DrawMethod::automatic, DrawMethod::exact, DrawMethod::vecchia};

Vector exact_draw(const kernels::Kernel& kernel, const Matrix& x, double nugget,
                  std::uint64_t seed) {
  const Index n = x.rows();
  Matrix k(n, n);
  operators::dense_matrix(kernel, x, k);
  k.diagonal().array() += nugget;
  const linalg::Cholesky factor(std::move(k));

  Vector z(n), f(n);
  Rng(seed, "gp-draw").fill_normal(z);
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
    f.segment(first, rows) = sum;
  });
  return f;
}

approximations::VecchiaDraw sparse_draw(const kernels::Kernel& kernel, const Matrix& x,
                                        double nugget, const DrawOptions& options,
                                        const ProgressCallback& progress) {
  approximations::DrawObserver observer;
  if (progress)
    observer = [&](Index drawn) {
      return progress({"draw", static_cast<double>(drawn) / static_cast<double>(x.rows()),
                       fmt::format("{} of {} points", count_text(drawn), count_text(x.rows()))});
    };
  return approximations::vecchia_draw(
      kernel, x, nugget,
      {.neighbours = options.neighbours.value_or(kDrawNeighbours), .seed = options.seed}, observer);
}

void check_memory(const DrawOptions& options, Index n, Index d) {
  const double need = draw_bytes(options, n, d);
  if (need > options.memory_bytes)
    throw DoesNotFit(fmt::format("a draw of {} points ({}) needs {}, but {} may be used",
                                 count_text(n), to_string(resolve(options, n)), format_bytes(need),
                                 format_bytes(options.memory_bytes)));
}

}  // namespace

std::string_view to_string(DrawMethod method) {
  switch (method) {
    case DrawMethod::automatic:
      return "auto";
    case DrawMethod::exact:
      return "exact";
    case DrawMethod::vecchia:
      return "vecchia";
  }
  return "unknown";
}

std::vector<std::string> draw_method_names() {
  std::vector<std::string> names;
  for (const auto method : kMethods) names.emplace_back(to_string(method));
  return names;
}

DrawMethod draw_method(const std::string& name) {
  for (const auto method : kMethods)
    if (name == to_string(method)) return method;
  throw InvalidArgument(fmt::format("unknown way to draw '{}'; there are: {}", name,
                                    fmt::join(draw_method_names(), ", ")));
}

DrawMethod resolve(const DrawOptions& options, Index n) {
  if (options.neighbours && *options.neighbours < 1)
    throw InvalidArgument(
        fmt::format("a draw given {} neighbours: there must be one at least", *options.neighbours));
  if (options.neighbours && options.method == DrawMethod::exact)
    throw InvalidArgument("an exact draw is given all points; neighbours are for vecchia");
  if (options.method != DrawMethod::automatic) return options.method;
  return options.neighbours || n > kMostExactDraw ? DrawMethod::vecchia : DrawMethod::exact;
}

double draw_bytes(const DrawOptions& options, Index n, Index d) {
  const double vectors = 3 * 8.0 * static_cast<double>(n);  // f, noise, target
  if (resolve(options, n) == DrawMethod::exact) return vectors + linalg::cholesky_bytes(n);
  return vectors +
         approximations::vecchia_draw_bytes(n, d, options.neighbours.value_or(kDrawNeighbours));
}

Draw draw_from_gp(const inference::Problem& problem, const Matrix& x, const DrawOptions& options,
                  const ProgressCallback& callback) {
  const ObservedCall call(callback);
  const auto& progress = call.progress();
  const Index n = x.rows();
  check_memory(options, n, x.cols());
  const double nugget = kNugget * problem.kernel.diagonal(x).mean();
  Draw draw{.method = resolve(options, n)};
  if (draw.method == DrawMethod::exact) {
    draw.latent = exact_draw(problem.kernel, x, nugget, options.seed);
  } else {
    auto drawn = sparse_draw(problem.kernel, x, nugget, options, progress);
    draw.latent = std::move(drawn.values);
    draw.neighbours = drawn.neighbours;
    draw.raised = drawn.raised;
  }
  Vector noise(n);
  Rng(options.seed, "gp-noise").fill_normal(noise);
  draw.target = draw.latent + std::sqrt(problem.noise()) * noise;
  return draw;
}

}  // namespace mercer::studies
