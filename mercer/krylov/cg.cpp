#include "mercer/krylov/cg.hpp"

#include "mercer/krylov/detail/conjugate_gradients.hpp"

namespace mercer::krylov {

SolveResult cg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
               const CgOptions& options, const CgContext& context) {
  check_arguments("cg", a, b, x, options, context);
  refuse_option("cg", options.window.has_value(), "window", "fcg");
  refuse_option("cg", options.window_restarts, "window_restarts", "fcg");
  refuse_option("cg", options.restart.has_value(), "restart", "gmres and fgmres");
  refuse_option("cg", options.random_stop.has_value(), "random_stop", "unbiased solvers");
  return detail::ConjugateGradients(a, b, x, options, context, std::nullopt).run();
}

double cg_bytes(Index n, Index columns, bool preconditioned) {
  return 8.0 * (preconditioned ? 4 : 3) * static_cast<double>(n) * static_cast<double>(columns);
}

double cg_flops(Index n, Index columns) {
  return 10.0 * static_cast<double>(n) * static_cast<double>(columns);
}

SolverInfo cg_info() {
  return {.name = "cg",
          .summary = "conjugate gradients",
          .solve = cg,
          .needs_positive_definite = true,
          .flexible = false,
          .keeps_coefficients = true,
          .bytes = cg_bytes,
          .flops = cg_flops};
}

}  // namespace mercer::krylov
