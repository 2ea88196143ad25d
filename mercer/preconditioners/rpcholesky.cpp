#include "mercer/preconditioners/rpcholesky.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mercer::preconditioners {
namespace {

Built make_rpcholesky(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const Index asked = std::max<Index>(effective_rank(n, options), 1);
  approximations::RpCholesky factorisation(target.k, {.rank = asked, .seed = options.seed});
  factorisation.grow(asked);
  Built built;
  built.report.kernel_values = factorisation.kernel_values();
  auto f = std::move(factorisation).take();
  const Index rank = f.rank();
  const double left = f.trace > 0 ? f.trace_error / f.trace : 0.0;
  auto p = std::make_unique<Woodbury>(std::move(f.factor), target.noise_variance);
  built.report.rank = p->rank();
  built.report.bytes = Woodbury::bytes(n, p->rank());
  built.report.notes = rank_note(n, options);
  if (f.exhausted) built.report.notes += fmt::format("nothing of K was left after rank {}; ", rank);
  if (p->dropped() > 0)
    built.report.notes += fmt::format("{} directions below rounding left out; ", p->dropped());
  built.report.notes += fmt::format("{:.3g} % of the trace of K left", 100 * left);
  built.preconditioner = std::move(p);
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

PreconditionerInfo rpcholesky_info() {
  return {.name = "rpcholesky",
          .summary = "randomly pivoted partial Cholesky of K plus noise",
          .make = make_rpcholesky,
          .cost = rpcholesky_cost,
          .takes = {.rank = true}};
}

}  // namespace mercer::preconditioners
