// How a solver stops by a draw, and what it reports of it (ulisse.hpp). A run that has reached its
// early tolerance after l0 iterations takes its j-th further step with probability S_j, and what it
// then adds to the solution is divided by S_j: the mean over draws is the solution that the run
// would have ended with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

/// S_j, the probability that step j after the early tolerance is taken.
enum class Continuation {
  residual,    // the smallest |r| so far, before the step, over |r| at the early tolerance
  geometric,   // exp(-beta j)
  conditional  // exp(-beta j (j + 1) / 2): after step j - 1, step j has probability exp(-beta j)
};

/// "residual", "geometric", "conditional".
std::string_view to_string(Continuation rule);
inline constexpr std::initializer_list<Continuation> kContinuations = {
    Continuation::residual, Continuation::geometric, Continuation::conditional};

struct RandomStopOptions {
  /// Draws begin when |b - A x| <= early_tolerance |b|. At or below the final tolerance there are
  /// none: the solver is then conjugate gradients.
  double early_tolerance = 1e-2;
  /// The first so many columns never stop by a draw, but at the final tolerance: right-hand sides
  /// whose solutions enter a formula that is not linear in them.
  int whole_columns = 0;
  Continuation continuation = Continuation::residual;
  double beta = 0.1;  // of the rules that have one
  std::uint64_t seed = 0;
  /// Column k of a block draws from stream first_stream + k of the seed: a column alone draws what
  /// it draws in a block, and runs of one seed with streams of their own are independent.
  std::uint64_t first_stream = 0;
  /// For studies and tests: go on to the final tolerance whatever is drawn, and report the exact
  /// expected iterations and variances. Costs the whole solve and N doubles for each step after the
  /// early tolerance.
  bool whole_run = false;
  /// Whether A itself gives the residuals of first guesses and of solutions by a draw. Without, and
  /// with a low-precision operator, that one gives the former, and in place of the latter the last
  /// iterate's is reported, as the recurrence has it: two products with A less. Means are the same:
  /// on the way A corrects every residual whose drift is a part of it. Without such an operator
  /// there is no difference.
  bool measure_residuals = true;
};

template <class Visitor>
void visit_fields(RandomStopOptions& o, Visitor&& field) {
  field("early_tolerance", o.early_tolerance, BelowOne{});
  field("whole_columns", o.whole_columns, NonNegative{});
  field("beta", o.beta, Positive{});
  field("random_stop_seed", o.seed, Any{});
  field("first_stream", o.first_stream, Any{});
  field("whole_run", o.whole_run, Any{});
  field("measure_residuals", o.measure_residuals, Any{});
}

/// What the random stop of one right-hand side was.
struct RandomStop {
  /// Iterations to the early tolerance; unset when it was not reached, or when the tolerance itself
  /// ended the solve there: nothing was drawn then.
  std::optional<int> early_iterations;
  int extra_iterations = 0;  // taken after them
  /// Sum over the steps to the final tolerance of the probability that they are taken, S_j or with
  /// two draws 1 - (1 - S_j)^2: exact with whole_run; otherwise steps that were not taken are
  /// extrapolated from the rate at which the residual fell.
  double expected_extra_iterations = 0;
  /// E |xhat - x|_A^2, x what the run would have ended with, = sum_j alpha_j <r, z> (1 / S_j - 1),
  /// because steps of conjugate gradients are A-orthogonal. Exact with whole_run; otherwise an
  /// unbiased estimate from the steps that were taken.
  double energy_variance = 0;
  /// E |xhat - x|^2 = sum_jk <delta_j, delta_k> / S_min(j,k) - |sum_j delta_j|^2; whole_run only.
  std::optional<double> variance;
  /// S falls faster than the squared residual on the way to the final tolerance (by extrapolation
  /// where the run stopped before): the variance is in draws that hardly ever happen, so that
  /// samples look better than they are. Take Continuation::residual, or a smaller beta.
  bool heavy_tail = false;
};

}  // namespace mercer::krylov
MERCER_API_END
