#include "mercer/krylov/solver.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/linalg/reductions.hpp"

namespace mercer::krylov {

std::string_view to_string(Continuation rule) {
  switch (rule) {
    case Continuation::residual:
      return "residual";
    case Continuation::geometric:
      return "geometric";
    case Continuation::conditional:
      return "conditional";
  }
  return "unknown";
}

std::size_t CgCoefficients::lanczos_steps() const {
  if (beta.empty()) return 0;
  const auto anew = std::find(beta.begin() + 1, beta.end(), 0.0);
  return static_cast<std::size_t>(anew - beta.begin());
}

StopReason overall(const std::vector<StopReason>& columns) {
  for (const auto reason : {StopReason::interrupted, StopReason::breakdown, StopReason::stagnation,
                            StopReason::iteration_limit, StopReason::random_stop})
    if (std::find(columns.begin(), columns.end(), reason) != columns.end()) return reason;
  return StopReason::converged;
}

namespace {

/// What one rank can see by itself.
void check_here(const char* solver, const linalg::LinearOperator& a, ConstMatrixView b,
                ConstMatrixView x, const SolverOptions& options, const SolverContext& context) {
  const auto require = [&](const char* what, Index value, const char* other, Index expected) {
    if (value != expected)
      throw DimensionMismatch(fmt::format("{}: {}", solver, what), value, other, expected);
  };
  const auto require_rows = [&](const char* what, const linalg::RowSpace& space) {
    const auto rows = a.row_space();
    if (space != rows)
      throw InvalidArgument(fmt::format(
          "{}: {} holds rows {} to {} of {}, but A rows {} to {} of {}, shared among other ranks",
          solver, what, space.begin(), space.end(), space.global_size(), rows.begin(), rows.end(),
          rows.global_size()));
  };
  require("rows of b", b.rows(), "size of A", a.size());
  require("rows of x", x.rows(), "size of A", a.size());
  require("columns of x", x.cols(), "columns of b", b.cols());
  if (context.preconditioner != nullptr) {
    require("size of the preconditioner", context.preconditioner->size(), "size of A", a.size());
    require_rows("the preconditioner", context.preconditioner->row_space());
  }
  if (context.low_precision != nullptr) {
    require("size of the low-precision operator", context.low_precision->size(), "size of A",
            a.size());
    require_rows("the low-precision operator", context.low_precision->row_space());
  }
  validate(options);
  if (!b.allFinite())
    throw InvalidArgument(
        fmt::format("{}: the right-hand side has a value that is not finite", solver));
  if (!x.allFinite())
    throw InvalidArgument(
        fmt::format("{}: the first guess has a value that is not finite", solver));
}

}  // namespace

void check_arguments(const char* solver, const linalg::LinearOperator& a, ConstMatrixView b,
                     ConstMatrixView x, const SolverOptions& options,
                     const SolverContext& context) {
  check_together(solver, a.row_space(), b.cols(),
                 [&] { check_here(solver, a, b, x, options, context); });
}

void check_together(const char* solver, const linalg::RowSpace& space, Index columns,
                    const std::function<void()>& check) {
  linalg::check_on_all_ranks(space, solver, check);
  if (!space.split()) return;
  const auto most = static_cast<Index>(space.max(static_cast<double>(columns)));
  const auto fewest = static_cast<Index>(space.min(static_cast<double>(columns)));
  if (most != fewest)
    throw DimensionMismatch(fmt::format("{}: columns of b on one rank", solver), most,
                            "columns on another", fewest);
}

void refuse_option(const char* solver, bool is_set, const char* option, const char* takers) {
  if (is_set)
    throw InvalidArgument(
        fmt::format("{}: the option {} is for {}; leave it unset here", solver, option, takers));
}

}  // namespace mercer::krylov
