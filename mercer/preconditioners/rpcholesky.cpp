#include "mercer/preconditioners/rpcholesky.hpp"

#include <algorithm>
#include <utility>

#include "mercer/linalg/reductions.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {
namespace {

Built make_rpcholesky(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.points();
  BuildReport growth;
  auto f =
      grown_rpcholesky(target, std::max<Index>(effective_rank(n, options), 1), options.seed, growth)
          .take();
  auto notes = rank_note(n, options) + exhausted_note(f);
  Built built = build_low_rank(std::move(f), target.noise, target.k.row_space(), std::move(notes));
  built.report.trace_left = growth.trace_left;
  built.report.trace_left_at_half = growth.trace_left_at_half;
  return built;
}

Cost rpcholesky_cost(Index n, Index, const PreconditionerOptions& options) {
  const Index rank = effective_rank(n, options);
  const double bytes = Woodbury::bytes(n, rank);
  return {.bytes = bytes,
          .peak_bytes = std::max(bytes, approximations::rpcholesky_bytes(n, rank)),
          .kernel_values = approximations::rpcholesky_kernel_values(n, rank),
          .build_flops = approximations::rpcholesky_flops(n, rank) + Woodbury::build_flops(n, rank),
          .apply_flops = Woodbury::apply_flops(n, rank)};
}

}  // namespace

approximations::RpCholeskyOptions rpcholesky_options(const Target& target, Index rank,
                                                     std::uint64_t seed) {
  approximations::RpCholeskyOptions options{.rank = rank, .seed = seed};
  const auto space = target.k.row_space();
  if (space.any(!target.noise.uniform()))
    options.weights = linalg::harmonic_mean(space, target.noise) *
                      target.noise.vector(target.k.size()).cwiseInverse();
  return options;
}

approximations::RpCholesky grown_rpcholesky(const Target& target, Index rank, std::uint64_t seed,
                                            BuildReport& report) {
  approximations::RpCholesky f(target.k, rpcholesky_options(target, rank, seed));
  const auto left = [&] { return f.trace() > 0 ? f.residual_trace() / f.trace() : 0.0; };
  f.grow(rank / 2);
  report.trace_left_at_half = left();
  f.grow(rank - f.rank());
  report.trace_left = left();
  return f;
}

PreconditionerInfo rpcholesky_info() {
  return {.name = "rpcholesky",
          .summary = "randomly pivoted partial Cholesky of K plus noise",
          .make = make_rpcholesky,
          .cost = rpcholesky_cost,
          .takes = {.rank = true},
          .over_ranks = OverRanks::whole};
}

}  // namespace mercer::preconditioners
