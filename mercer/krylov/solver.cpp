#include "mercer/krylov/solver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"

namespace mercer::krylov {

std::size_t CgCoefficients::lanczos_steps() const {
  if (beta.empty()) return 0;
  const auto anew = std::find(beta.begin() + 1, beta.end(), 0.0);
  return static_cast<std::size_t>(anew - beta.begin());
}

StopReason overall(const std::vector<StopReason>& columns) {
  for (const auto reason : {StopReason::interrupted, StopReason::breakdown, StopReason::stagnation,
                            StopReason::iteration_limit})
    if (std::find(columns.begin(), columns.end(), reason) != columns.end()) return reason;
  return StopReason::converged;
}

void check_arguments(const char* solver, const linalg::LinearOperator& a, ConstMatrixView b,
                     ConstMatrixView x, const SolverOptions& options,
                     const SolverContext& context) {
  const auto require = [&](const char* what, Index value, const char* other, Index expected) {
    if (value != expected)
      throw DimensionMismatch(fmt::format("{}: {}", solver, what), value, other, expected);
  };
  require("rows of b", b.rows(), "size of A", a.size());
  require("rows of x", x.rows(), "size of A", a.size());
  require("columns of x", x.cols(), "columns of b", b.cols());
  if (context.preconditioner != nullptr)
    require("size of the preconditioner", context.preconditioner->size(), "size of A", a.size());
  if (context.low_precision != nullptr)
    require("size of the low-precision operator", context.low_precision->size(), "size of A",
            a.size());
  validate(options);
  if (!b.allFinite())
    throw InvalidArgument(
        fmt::format("{}: the right-hand side has a value that is not finite", solver));
  if (!x.allFinite())
    throw InvalidArgument(
        fmt::format("{}: the first guess has a value that is not finite", solver));
}

void refuse_option(const char* solver, bool is_set, const char* option, const char* takers) {
  if (is_set)
    throw InvalidArgument(
        fmt::format("{}: the option {} is for {}; leave it unset here", solver, option, takers));
}

}  // namespace mercer::krylov
