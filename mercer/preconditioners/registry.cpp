#include "mercer/preconditioners/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/preconditioners/jacobi.hpp"
#include "mercer/preconditioners/pivoted_cholesky.hpp"

namespace mercer::preconditioners {
namespace {

using Options = PreconditionerOptions;

Index no_columns(Index, const Options&) { return 0; }
double no_cost(Index, const Options&) { return 0; }
double no_build(Index, Index, const Options&) { return 0; }

Built make_none(const operators::KernelOperator&, double, const Options&) { return {}; }

Built make_jacobi(const operators::KernelOperator& k, double noise_variance, const Options&) {
  Built built;
  built.preconditioner = std::make_unique<Jacobi>(k, noise_variance);
  built.report.bytes = 8.0 * static_cast<double>(k.size());
  return built;
}
double jacobi_bytes(Index n, const Options&) { return 8.0 * static_cast<double>(n); }
double jacobi_build(Index n, Index d, const Options&) {
  return static_cast<double>(n) * static_cast<double>(d);
}
double jacobi_apply(Index n, const Options&) { return static_cast<double>(n); }

Built make_pivoted_cholesky(const operators::KernelOperator& k, double noise_variance,
                            const Options& options) {
  const Index asked = effective_rank(k.size(), options);
  auto p = std::make_unique<PivotedCholesky>(
      k, noise_variance, approximations::PivotedCholeskyOptions{.rank = std::max<Index>(asked, 1)});
  Built built;
  built.report.rank = p->rank();
  built.report.kernel_columns = p->columns_evaluated();
  built.report.bytes = Woodbury::bytes(k.size(), p->rank());
  if (options.rank && *options.rank > k.size())
    built.report.notes =
        fmt::format("rank {} cut to the number of points {}; ", *options.rank, k.size());
  if (p->exhausted())
    built.report.notes += fmt::format("nothing of K was left after rank {}; ", p->rank());
  if (p->dropped() > 0)
    built.report.notes += fmt::format("{} directions below rounding left out; ", p->dropped());
  built.report.notes +=
      fmt::format("{:.3g} % of the trace of K left", 100 * p->relative_trace_error());
  built.preconditioner = std::move(p);
  return built;
}
double pivoted_bytes(Index n, const Options& o) { return Woodbury::bytes(n, effective_rank(n, o)); }
Index pivoted_columns(Index n, const Options& o) { return effective_rank(n, o); }
double pivoted_build(Index n, Index, const Options& o) {
  const Index rank = effective_rank(n, o);
  return approximations::pivoted_cholesky_flops(n, rank) + Woodbury::build_flops(n, rank);
}
double pivoted_apply(Index n, const Options& o) {
  return Woodbury::apply_flops(n, effective_rank(n, o));
}

constexpr std::array registry = {
    PreconditionerInfo{"none", make_none, "no preconditioner", false, no_cost, no_columns, no_build,
                       no_cost},
    PreconditionerInfo{"jacobi", make_jacobi, "the diagonal of K plus noise", false, jacobi_bytes,
                       no_columns, jacobi_build, jacobi_apply},
    PreconditionerInfo{"pivoted-cholesky", make_pivoted_cholesky,
                       "greedy partial Cholesky of K plus noise", true, pivoted_bytes,
                       pivoted_columns, pivoted_build, pivoted_apply},
};

}  // namespace

Index default_rank(Index n) {
  const auto wanted = static_cast<Index>(4 * std::sqrt(static_cast<double>(n)));
  return std::min({std::max<Index>(wanted, 100), Index{1000}, n});
}

Index effective_rank(Index n, const PreconditionerOptions& options) {
  return std::min(options.rank.value_or(default_rank(n)), n);
}

std::span<const PreconditionerInfo> preconditioners() { return registry; }

const PreconditionerInfo& preconditioner(std::string_view name) {
  std::string names;
  for (const auto& info : registry) {
    if (info.name == name) return info;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  throw InvalidArgument(fmt::format("there is no preconditioner '{}'; there are: {}", name, names));
}

Built make(std::string_view name, const operators::KernelOperator& k, double noise_variance,
           const PreconditionerOptions& options) {
  const auto& info = preconditioner(name);
  validate(options);
  if (options.rank && !info.takes_rank)
    throw InvalidArgument(fmt::format("the preconditioner '{}' has no rank (--rank)", name));
  const Timer timer;
  Built built = info.make(k, noise_variance, options);
  built.report.name = info.name;
  built.report.build_seconds = timer.seconds();
  return built;
}

}  // namespace mercer::preconditioners
