#include "mercer/preconditioners/rpcholesky.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mercer::preconditioners {
namespace {

Built make_rpcholesky(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  BuildReport growth;
  auto factorisation = grown_rpcholesky(target.k, std::max<Index>(effective_rank(n, options), 1),
                                        options.seed, growth);
  growth.kernel_values = factorisation.kernel_values();
  auto f = std::move(factorisation).take();
  growth.notes = rank_note(n, options);
  if (f.exhausted) growth.notes += fmt::format("nothing of K was left after rank {}; ", f.rank());
  Built built = rpcholesky_on(target, std::move(f.factor));
  built.report.kernel_values = growth.kernel_values;
  built.report.trace_left = growth.trace_left;
  built.report.trace_left_at_half = growth.trace_left_at_half;
  built.report.notes = growth.notes + built.report.notes +
                       fmt::format("{:.3g} % of the trace of K left", 100 * *growth.trace_left);
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

approximations::RpCholesky grown_rpcholesky(const operators::KernelOperator& k, Index rank,
                                            std::uint64_t seed, BuildReport& report) {
  approximations::RpCholesky f(k, {.rank = rank, .seed = seed});
  const auto left = [&] { return f.trace() > 0 ? f.residual_trace() / f.trace() : 0.0; };
  f.grow(rank / 2);
  report.trace_left_at_half = left();
  f.grow(rank - f.rank());
  report.trace_left = left();
  return f;
}

Built rpcholesky_on(const Target& target, Matrix&& f) {
  auto p = std::make_unique<Woodbury>(std::move(f), target.noise_variance);
  Built built;
  built.report.rank = p->rank();
  built.report.bytes = Woodbury::bytes(target.k.size(), p->rank());
  if (p->dropped() > 0)
    built.report.notes = fmt::format("{} directions below rounding left out; ", p->dropped());
  built.preconditioner = std::move(p);
  return built;
}

PreconditionerInfo rpcholesky_info() {
  return {.name = "rpcholesky",
          .summary = "randomly pivoted partial Cholesky of K plus noise",
          .make = make_rpcholesky,
          .cost = rpcholesky_cost,
          .takes = {.rank = true}};
}

}  // namespace mercer::preconditioners
