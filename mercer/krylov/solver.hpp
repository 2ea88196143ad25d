// What every iterative solver takes and gives back: A X = B for symmetric A known by its products,
// one column of B per right-hand side. Where the rows of A are shared among ranks
// (linalg/row_space.hpp), b and x are the rows held here, all ranks call the solver together, and
// each gets the same report (docs/solvers.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "mercer/core/history.hpp"
#include "mercer/core/options.hpp"
#include "mercer/krylov/random_stop.hpp"
#include "mercer/krylov/trail.hpp"
#include "mercer/linalg/linear_operator.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

struct SolverOptions {
  double tolerance = 1e-6;  // stop when |b - A x| <= tolerance |b|, column by column
  /// When set, it replaces `tolerance`: stop when |b - A x| <= rms_tolerance sqrt(N). The rule
  /// |r|^2 <= 1e-10 N of Cutajar et al. (2016) is rms_tolerance = 1e-5.
  std::optional<double> rms_tolerance;
  int max_iterations = 1000;
  /// cg, fcg: iterations between refreshes of r = b - A x (with a low-precision operator the
  /// measured drift decides instead; gmres refreshes it at every restart).
  int residual_replacement_interval = 50;
  /// Give up when the true residual has not halved in so many iterations; max(500, 10 sqrt(N))
  /// when unset.
  std::optional<int> stagnation_window;
  bool keep_coefficients = false;  // cg: alpha and beta of every column, for Lanczos quadrature
  /// fcg: directions kept to make the next one conjugate to, 15 when unset. max_iterations or more
  /// keeps them all and never truncates; memory grows with the iterations then.
  std::optional<int> window;
  /// fcg: Notay's truncation-restart. The window fills up and starts anew, direction k is made
  /// conjugate to the last max(1, k mod (window + 1)). Half the work besides products, but more
  /// iterations when P hardly changes (see fcg.hpp).
  bool window_restarts = false;
  std::optional<int> restart;                    // gmres, fgmres: steps in a cycle, 30 when unset
  std::optional<RandomStopOptions> random_stop;  // unbiased solvers: when they stop by a draw
};

template <class Visitor>
void visit_fields(SolverOptions& o, Visitor&& field) {
  field("tolerance", o.tolerance, Positive{});
  field("rms_tolerance", o.rms_tolerance, Positive{});
  field("max_iterations", o.max_iterations, Positive{});
  field("residual_replacement_interval", o.residual_replacement_interval, Positive{});
  field("stagnation_window", o.stagnation_window, Positive{});
  field("keep_coefficients", o.keep_coefficients, Any{});
  field("window", o.window, Positive{});
  field("window_restarts", o.window_restarts, Any{});
  field("restart", o.restart, Positive{});
  if (o.random_stop) visit_fields(*o.random_stop, field);
}

/// What a solve may use besides A; nothing here is owned.
struct SolverContext {
  const linalg::Preconditioner* preconditioner = nullptr;  // none when null
  Observer observer = {};                                  // none when empty
  /// A cheaper stand-in for A, used for the products of the iteration; residuals are then checked
  /// and replaced with A itself (see refinement.hpp). A is used throughout when null.
  const linalg::LinearOperator* low_precision = nullptr;
  /// When not null it becomes b - A x, as computed for the last check: no further product. Where
  /// RandomStopOptions::measure_residuals is not set, that of the last iterate by its recurrence.
  Matrix* residual = nullptr;
  /// When not null it is offered the solutions of the first column on the way.
  Trail* trail = nullptr;
  /// Unbiased solvers: when not null it becomes the last iterate of the run itself, whose residual
  /// is below that of a solution by chance. It is the better first guess of the next solve.
  Matrix* last_iterate = nullptr;
};

/// The coefficients of one column's conjugate gradients: x += alpha p, p = z + beta p. beta[k]
/// belongs to the direction of iteration k (beta[0] = 0), energy[k] is <r, z> before it.
struct CgCoefficients {
  std::vector<double> alpha, beta, energy;
  /// Iterations until a direction was first started anew. So many make a Lanczos matrix that
  /// belongs to the first residual; later ones belong to another.
  std::size_t lanczos_steps() const;
};

struct SolveResult {
  StopReason stop = StopReason::converged;  // `converged` only when every column is
  std::vector<StopReason> column_stops;
  int iterations = 0;  // the largest of column_iterations
  std::vector<int> column_iterations;
  History residuals;                       // one row per iteration: |r| / |b| of each column
  std::int64_t matvecs = 0;                // single-column products, checks included
  std::int64_t low_precision_matvecs = 0;  // of these, with the low-precision operator
  std::int64_t inner_iterations = 0;       // of a preconditioner that iterates (InnerIterations)
  std::int64_t inner_matvecs = 0;          // single-column products inside it
  double seconds = 0;
  /// |b - A x| / |b|, computed anew at the end but for columns whose random stop is not to be
  /// measured (RandomStopOptions::measure_residuals); the worst column.
  double relative_residual = 0;
  Vector column_residuals;  // the same for every column
  Vector residual_norms;    // |b - A x| of every column
  /// Directions started anew because r had drifted from b - A x; for gmres and fgmres, cycles begun
  /// after the first. Summed over columns.
  int restarts = 0;
  bool fell_back_to_double = false;          // low precision was too coarse; finished with A itself
  std::vector<CgCoefficients> coefficients;  // one per column when asked for
  std::vector<RandomStop> random_stops;      // one per column, of solvers that are unbiased

  bool converged() const { return stop == StopReason::converged; }
  /// Every product, the preconditioner's own included.
  std::int64_t total_matvecs() const { return matvecs + inner_matvecs; }
};

using SolveFunction = SolveResult (*)(const linalg::LinearOperator& a, ConstMatrixView b,
                                      MatrixView x, const SolverOptions& options,
                                      const SolverContext& context);

/// What a solver says of itself; each solver's file offers `SolverInfo NAME_info()`.
struct SolverInfo {
  std::string_view name;     // as the user types it
  std::string_view summary;  // for --help and docs
  SolveFunction solve;
  bool needs_positive_definite;
  bool flexible;                    // P may change from step to step
  bool takes_low_precision = true;  // uses SolverContext::low_precision
  bool keeps_coefficients = false;  // SolverOptions::keep_coefficients may be asked of it
  /// It stops by a draw, and its solutions are right on average, not each by itself: it is refused
  /// where one certified solution is needed. P and A must stay the same throughout.
  bool unbiased = false;
  /// Workspace in bytes, and flops per iteration besides products and preconditioner.
  double (*bytes)(Index n, Index columns, bool preconditioned);
  double (*flops)(Index n, Index columns);
};

/// The overall reason: converged when all are, otherwise the gravest (interrupted, breakdown,
/// stagnation, iteration limit, random stop, in this order).
StopReason overall(const std::vector<StopReason>& columns);

/// Throws when shapes disagree, options are out of range, or b or x is not finite; on all ranks
/// when it does so on one.
void check_arguments(const char* solver, const linalg::LinearOperator& a, ConstMatrixView b,
                     ConstMatrixView x, const SolverOptions& options, const SolverContext& context);

/// Calls check(); when it throws on one rank this throws on all, and so it does when they have
/// different numbers of columns.
void check_together(const char* solver, const linalg::RowSpace& space, Index columns,
                    const std::function<void()>& check);

/// Throws when an option that only other solvers take is set.
void refuse_option(const char* solver, bool is_set, const char* option, const char* takers);

}  // namespace mercer::krylov
MERCER_API_END
