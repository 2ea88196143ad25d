// Flexible conjugate gradients: the preconditioner may change from step to step.
//   Source: Notay (2000), Flexible conjugate gradients, SIAM J. Sci. Comput. 22.
//   Cost:   per iteration one block product, one block solve with P and 12 N + 4 N min(k, m) flops
//           a column. Workspace 3 N t doubles (4 N t with a preconditioner) and 2 m N t for the
//           window of m directions, taken as it fills. One more product per column to check the
//           answer and every 50 iterations.
//   When not: P is fixed and memory short (cg does the same in less); A indefinite (fgmres).
//
// Each direction is made conjugate to the last m = options.window, 15 by default. Kept in full, the
// window also heals CG's loss of orthogonality: on Matern systems of 1000 points with noise 1e-2,
// 1e-3, 1e-4 it took 140, 260, 359 iterations where cg took 350, 1040, 1898, for 16 N bytes each.
// Notay's truncation-restart (options.window_restarts) took 450, 1439, 3457 with m = 15, a window
// that slides 316, 895, 1626; where P changed they were within 20 % of each other, either way.
//
// Checks, columns, low precision and stops as in cg.hpp.
#pragma once

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

constexpr int default_window = 15;

/// Solves A X = B for symmetric positive-definite A; arguments as in cg(), and options.window.
SolveResult fcg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                const SolverOptions& options = {}, const SolverContext& context = {});

/// Workspace in bytes, and flops per iteration besides products and preconditioner, with the
/// default window.
double fcg_bytes(Index n, Index columns, bool preconditioned);
double fcg_flops(Index n, Index columns);

SolverInfo fcg_info();

}  // namespace mercer::krylov
MERCER_API_END
