#include "mercer/preconditioners/pivoted_cholesky.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mercer::preconditioners {
namespace {

Built make_pivoted_cholesky(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const Index asked = std::max<Index>(effective_rank(n, options), 1);
  auto p = std::make_unique<PivotedCholesky>(target.k, target.noise_variance,
                                             approximations::PivotedCholeskyOptions{.rank = asked});
  Built built;
  built.report.rank = p->rank();
  built.report.kernel_values = static_cast<double>(n) * static_cast<double>(p->columns_evaluated());
  built.report.bytes = Woodbury::bytes(n, p->rank());
  built.report.notes = rank_note(n, options);
  if (p->exhausted())
    built.report.notes += fmt::format("nothing of K was left after rank {}; ", p->rank());
  if (p->dropped() > 0)
    built.report.notes += fmt::format("{} directions below rounding left out; ", p->dropped());
  built.report.notes +=
      fmt::format("{:.3g} % of the trace of K left", 100 * p->relative_trace_error());
  built.preconditioner = std::move(p);
  return built;
}

Cost pivoted_cholesky_cost(Index n, Index, const PreconditionerOptions& options) {
  const Index rank = effective_rank(n, options);
  const double bytes = Woodbury::bytes(n, rank);
  return {.bytes = bytes,
          .peak_bytes = std::max(bytes, approximations::pivoted_cholesky_bytes(n, rank)),
          .kernel_values = static_cast<double>(n) * static_cast<double>(rank),
          .build_flops = Woodbury::build_flops(n, rank),
          .thin_flops = approximations::pivoted_cholesky_flops(n, rank),
          .apply_flops = Woodbury::apply_flops(n, rank)};
}

}  // namespace

PreconditionerInfo pivoted_cholesky_info() {
  return {.name = "pivoted-cholesky",
          .summary = "greedy partial Cholesky of K plus noise",
          .make = make_pivoted_cholesky,
          .cost = pivoted_cholesky_cost,
          .takes = {.rank = true}};
}

PivotedCholesky::PivotedCholesky(const operators::KernelOperator& k, double noise_variance,
                                 const approximations::PivotedCholeskyOptions& options)
    : PivotedCholesky(approximations::pivoted_cholesky(k, options), noise_variance) {}

PivotedCholesky::PivotedCholesky(approximations::LowRank approximation, double noise_variance)
    : core_(std::move(approximation.factor), noise_variance),
      relative_trace_error_(
          approximation.trace > 0 ? approximation.trace_error / approximation.trace : 0.0),
      columns_evaluated_(approximation.columns_evaluated),
      exhausted_(approximation.exhausted) {}

}  // namespace mercer::preconditioners
