// ULISSE: unbiased solutions of A X = B from conjugate gradients that stop early, at random.
//   Source: Filippone & Engler, Enabling scalable stochastic gradient-based inference for Gaussian
//           processes by employing the Unbiased LInear System SolvEr (ICML 2015). The default rule
//           S_j = min |r_{l0+j-1}| / |r_l0| is mercer's: a function of b alone, so as unbiased as
//           any, and of small variance (docs/methods/ulisse.md).
//   Cost:   conjugate gradients to the early tolerance, then a few steps, each with N further flops
//           a copy; one product a column for the true residual. Workspace of cg and N t doubles a
//           copy.
//   When not: one accurate solution is wanted. Each has about the early tolerance as its residual;
//           only the mean over draws has that of the final tolerance.
//
// With increments delta_l = x_l - x_{l-1}, l0 the first iteration at the early tolerance and u
// uniform, xhat = x_l0 + sum over j >= 1 with u < S_j of delta_{l0+j} / S_j. Since P(u < S_j) =
// S_j, E[xhat] is where the run ends when it is not stopped: at the tolerance, or at the limit of
// iterations if that comes first. The path x_l must not depend on the draw, so P is fixed and the
// observer must not stop on account of it.
//
// The reason to stop is `random_stop`: neither `converged`, which stays the true residual b - A x,
// nor a failure.
#pragma once

#include "mercer/krylov/solver.hpp"

MERCER_API_BEGIN
namespace mercer::krylov {

/// Solves A X = B for symmetric positive-definite A, once by chance; x (N x t) is the first guess
/// in, the random solution out. SolverOptions::random_stop says when draws begin and how they go,
/// SolveResult::random_stops what happened to each column.
SolveResult ulisse(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                   const SolverOptions& options = {}, const SolverContext& context = {});

/// The same, and `second` (N x t, set here) from a draw of its own on the same run: given b and the
/// first guess, the two are independent with equal means, so that E[x_1' M x_2] = x' M x. The run
/// goes on until both have stopped. What is reported of residuals is that of x; variances are those
/// of either.
SolveResult ulisse_pair(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                        Matrix& second, const SolverOptions& options = {},
                        const SolverContext& context = {});

SolverInfo ulisse_info();

}  // namespace mercer::krylov
MERCER_API_END
