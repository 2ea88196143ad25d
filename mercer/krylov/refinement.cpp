#include "mercer/krylov/refinement.hpp"

#include "mercer/krylov/cg.hpp"

namespace mercer::krylov {

SolveResult solve_mixed(const linalg::LinearOperator& high, const linalg::LinearOperator& low,
                        ConstMatrixView b, MatrixView x, const SolverOptions& options,
                        SolverContext context) {
  context.low_precision = &low;
  return cg(high, b, x, options, context);
}

}  // namespace mercer::krylov
