// Flexible conjugate gradients: the preconditioner may change from step to step.
//   Source: Notay (2000), Flexible conjugate gradients, SIAM J. Sci. Comput. 22: FCG(m) with
//           truncation and restart.
//   Cost:   per iteration one block product, one block solve with P and 12 N + 4 N m_k flops a
//           column, m_k <= m the directions that the new one is made conjugate to (on average about
//           m / 2). Workspace 3 N t doubles (4 N t with a preconditioner) and 2 m N t for the
//           window, taken as it fills. One more product per column to check the answer and every
//           50 iterations.
//   When not: P is fixed (cg does the same in less memory); A indefinite (fgmres).
//
// Direction k is made conjugate to the last m_k = max(1, k mod (m + 1)). Checks, columns, low
// precision and stops as in cg.hpp.
#pragma once

#include "mercer/krylov/solver.hpp"

namespace mercer::krylov {

constexpr int default_window = 15;

/// Solves A X = B for symmetric positive-definite A; arguments as in cg(), and options.window.
SolveResult fcg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                const SolverOptions& options = {}, const SolverContext& context = {});

/// Workspace in bytes, and flops per iteration besides products and preconditioner, with the
/// default window.
double fcg_bytes(Index n, Index columns, bool preconditioned);
double fcg_flops(Index n, Index columns);

}  // namespace mercer::krylov
