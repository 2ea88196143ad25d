// Conjugate gradients in mixed precision: cheap products inside, exact residuals outside.
//   Source: van der Vorst & Ye (2000), residual replacement; Carson & Higham (2018) for the limits
//           of refinement with a coarse inner operator.
//   Cost:   one low-precision product per iteration; one product with A each time the drift of the
//           recurrence from b - A x is estimated at a fifth of the residual (2 to 8 in a solve),
//           and to check the answer.
//   When not: eps_low times the condition number well above 1. It is then noticed (stagnation or
//           breakdown under the low precision) and the solve goes on with A itself, from where it
//           is: `fell_back_to_double` says so.
//
// When the residual is replaced the direction starts anew. Measured on Matern systems of condition
// 1e4 to 1e8 with rounded entries, that takes 2 to 40 % more iterations than CG in double; keeping
// the old direction, as van der Vorst & Ye do for rounding errors of the recurrence, took 4 to
// 160 % more, because the errors here are of the size of the residual.
#pragma once

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

/// Solves high X = B; low is a cheaper operator close to it. Arguments as in cg().
SolveResult solve_mixed(const linalg::LinearOperator& high, const linalg::LinearOperator& low,
                        ConstMatrixView b, MatrixView x, const SolverOptions& options = {},
                        SolverContext context = {});

}  // namespace mercer::krylov
MERCER_API_END
