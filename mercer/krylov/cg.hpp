// Preconditioned conjugate gradients, many right-hand sides at once.
//   Source: Hestenes & Stiefel (1952); Saad, Iterative Methods, alg. 9.1; residual replacement as
//           in van der Vorst & Ye (2000).
//   Cost:   per iteration one block product, one block solve with P and about 10 N flops a column;
//           one more product per column to check the answer and every 50 iterations. Workspace
//           3 N t doubles, 4 N t with a preconditioner.
//   When not: A indefinite (it stops with `breakdown`); P that changes from step to step.
//
// Each column runs its own recurrence, so its iterates do not depend on the others; columns that
// are done leave the block. `converged` always means the true residual b - A x: a column whose
// recurrence claims convergence puts its x into the next block product, in place of its direction,
// and goes on from the true residual when the claim was wrong.
#pragma once

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

using CgOptions = SolverOptions;
using CgContext = SolverContext;

/// Solves A X = B for symmetric positive-definite A; x (N x t) is the first guess in, the solution
/// out. Zero columns of x cost no product.
SolveResult cg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
               const CgOptions& options = {}, const CgContext& context = {});

/// Workspace in bytes, and flops per iteration besides products and preconditioner.
double cg_bytes(Index n, Index columns, bool preconditioned);
double cg_flops(Index n, Index columns);

SolverInfo cg_info();

}  // namespace mercer::krylov
MERCER_API_END
