// How laws of the registry call a solver.
#pragma once

#include "mercer/krylov/solver.hpp"

namespace mercer::testing {

/// An unbiased solver whose draws never begin has nothing random left, and is held to every law.
/// What it does by chance is in its own test, and where a test gives it a random stop.
inline krylov::SolveResult solve_without_draws(const krylov::SolverInfo& solver,
                                               const linalg::LinearOperator& a, ConstMatrixView b,
                                               MatrixView x, krylov::SolverOptions options = {},
                                               const krylov::SolverContext& context = {}) {
  if (solver.unbiased && !options.random_stop)
    options.random_stop = krylov::RandomStopOptions{.early_tolerance = 1e-300};
  return solver.solve(a, b, x, options, context);
}

}  // namespace mercer::testing
