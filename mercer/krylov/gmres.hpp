// GMRES and flexible GMRES with restart, preconditioned from the right, many right-hand sides.
//   Source: Saad & Schultz (1986); Saad (1993), A flexible inner-outer preconditioned GMRES
//           algorithm; Saad, Iterative Methods, alg. 9.5 and 9.6. Second Gram-Schmidt pass as in
//           Daniel, Gragg, Kaufman & Stewart (1976).
//   Cost:   per iteration one block product, one block solve with P, and for each of the j basis
//           vectors so far 4 N flops a column (8 N with the second pass); per cycle of m steps one
//           product to know b - A x. Workspace (3 + m + 1) N t doubles; fgmres with a
//           preconditioner keeps m N t more. gmres solves with P once more per cycle instead.
//   When not: A positive definite and P fixed: cg minimises as well, in constant memory and without
//           restarts, which can slow or stall GMRES (it says `stagnation`).
//
// A may be indefinite. Pseudo-block: each column has its own Hessenberg matrix and its own cycle,
// products are shared. Givens rotations give the residual norm at every step; it is the history.
// When it claims convergence and at each restart the true residual is computed (detail/
// block_solve.hpp). With a low-precision operator a cycle ends at the latest when it has reduced
// the residual by 1e4; the next starts from the residual in full precision.
#pragma once

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

constexpr int default_restart = 30;

/// Solves A X = B for symmetric A; arguments as in cg(), and options.restart. gmres takes P to be
/// the same at every step; fgmres lets it change.
SolveResult gmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                  const SolverOptions& options = {}, const SolverContext& context = {});
SolveResult fgmres(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                   const SolverOptions& options = {}, const SolverContext& context = {});

/// Workspace in bytes, and flops per iteration besides products and preconditioner (both passes of
/// Gram-Schmidt, averaged over a cycle), with the default restart.
double gmres_bytes(Index n, Index columns, bool preconditioned);
double fgmres_bytes(Index n, Index columns, bool preconditioned);
double gmres_flops(Index n, Index columns);

SolverInfo gmres_info();
SolverInfo fgmres_info();

}  // namespace mercer::krylov
MERCER_API_END
